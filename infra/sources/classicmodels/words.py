"""Invented names, places and texts. Nobody here exists."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Country:
    """Where customers live: how many of them, and how places, post codes and phones are written.

    ``post_code`` and ``phone`` are patterns: ``#`` stands for a digit. ``states`` is empty where nobody writes one.
    """

    name: str
    customers: int
    cities: tuple[str, ...]
    states: tuple[str, ...]
    post_code: str
    phone: str


COUNTRIES = (
    Country(
        "USA",
        36,
        ("Cedar Falls", "Port Alder", "New Harbor", "Maple Ridge", "Saint Orin", "Lakemont"),
        ("CA", "MA", "NY", "NJ", "PA", "CT", "NV"),
        "0####",
        "##########",
    ),
    Country("Canada", 6, ("Fort Birch", "Port Maren"), ("BC", "Ontario"), "V#F #K#", "(###) 555-####"),
    Country("Australia", 7, ("Wattle Bay", "Gum Creek"), ("NSW", "Victoria"), "3###", "0# #### ####"),
    Country("France", 14, ("Pont-Clair", "Valbrume", "Rochelune"), (), "44###", "40.##.####"),
    Country("Germany", 13, ("Neustein", "Altbruck", "Hochfeld"), (), "8####", "0###-######"),
    Country("Spain", 9, ("Villaluz", "Torrealta"), (), "28###", "(91) ### ## ##"),
    Country("UK", 8, ("Ashby Moor", "Little Fenwick"), (), "WX# #DP", "(###) 555-####"),
    Country("Italy", 5, ("Montechiaro", "Borgo Rosso"), (), "241##", "035-######"),
    Country("Finland", 4, ("Koivuranta",), (), "#####", "##-#### ###"),
    Country("Japan", 4, ("Kitamachi", "Namihama"), (), "### ####", "+81 # #### ####"),
    Country("Denmark", 3, ("Bredhavn",), (), "17##", "## ## ## ##"),
    Country("Norway", 3, ("Fjellvik",), (), "N ####", "+47 #### ####"),
    Country("Sweden", 3, ("Lindsund",), (), "S-### ##", "0###-## ## ##"),
    Country("Singapore", 3, ("Singapore",), (), "06####", "+65 ### ####"),
    Country("Portugal", 2, ("Porto Alvo",), (), "1###", "(1) ###-####"),
    Country("Poland", 2, ("Nowy Brzeg",), (), "01-###", "(26) ###-####"),
)

OFFICES = (
    # city, address, second line, state, country, post code, territory
    ("Port Alder", "12 Market Wharf", "Suite 900", "CA", "USA", "04081", "NA"),
    ("New Harbor", "88 Court Lane", "Floor 2", "MA", "USA", "02177", "NA"),
    ("Saint Orin", "41 East Row", "apt. 7C", "NY", "USA", "10955", "NA"),
    ("Valbrume", "9, quai des Lanternes", None, None, "France", "44017", "EMEA"),
    ("Namihama", "3-8 Hoshimachi", None, "Minato-Ku", "Japan", "102 8579", "Japan"),
    ("Wattle Bay", "60 Harbour Steps", "Level 4", None, "Australia", "2019", "APAC"),
    ("Ashby Moor", "7 Tanner's Yard", "Unit 3", None, "UK", "WX4 9DP", "EMEA"),
)

FIRST_NAMES = (
    "Ada",
    "Boris",
    "Carla",
    "Dmitri",
    "Elena",
    "Felix",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Karin",
    "Leo",
    "Mira",
    "Nils",
    "Olga",
    "Paolo",
    "Rosa",
    "Sven",
    "Tessa",
    "Viktor",
)

LAST_NAMES = (
    "Abbot",
    "Brandt",
    "Calloway",
    "D'Amico",
    "Eriksen",
    "Fontaine",
    "Garber",
    "Holloway",
    "Ivers",
    "Jansen",
    "Keller",
    "Lindqvist",
    "Marlow",
    "Norwood",
    "O'Hara",
    "Pereira",
    "Quist",
    "Rossi",
    "Sandoval",
    "Thorne",
    "Vance",
    "Whitlock",
    "Yamada",
)

ACCENTED_NAMES = ("Çelik", "Dvořák", "García", "Høgh", "Jääskeläinen", "Łukasik", "Müller", "Noël", "Świątek", "佐藤")

STREETS = ("Anchor Street", "Birch Avenue", "Chapel Row", "Dock Road", "Elm Walk", "Foundry Lane", "Gate Square")

SECOND_LINES = ("Level 3", "Suite 750", "2nd Floor", "c/o Warehouse B", "Bldg. 5")

TRADES = (
    "Collectables",
    "Gifts & Co",
    "Hobby House",
    "Imports, Ltd.",
    "Mini Wheels",
    "Model Shop",
    'Souvenirs "Corner"',
    "Toys of Finesse, Inc.",
)

LINES = (
    # product line, products, what a name ends in, description
    ("Classic Cars", 38, ("Coupe", "Roadster", "Saloon"), "Closed and open cars of the years when chrome was cheap."),
    ("Vintage Cars", 24, ("Phaeton", "Touring", "Runabout"), "Cars from before the war — spoked wheels, brass lamps."),
    ("Motorcycles", 13, ("Chopper", "Scrambler", "Sidecar"), "Two wheels, a moving stand and a leather-look saddle."),
    (
        "Planes",
        12,
        ("Biplane", "Flying Boat", "Mail Plane"),
        "Aircraft with turning propellers; décor sheets included.",
    ),
    ("Trucks and Buses", 11, ("Tanker", "Fire Engine", "City Bus"), "Working ladders, opening doors, rubber tyres."),
    ("Ships", 9, ("Schooner", "Frigate", "Paddle Steamer"), "Hulls of walnut and sails of cotton, on a stand."),
    ("Trains", 3, ("Steam Engine", "Diesel Engine", "Tram"), "Engines for the shelf and for the track."),
)

MAKERS = ("Aldous", "Bellweather", "Corvan", "Dornier Hill", "Estrella", "Falcone", "Grandin", "Halden", "Iveron")

VENDORS = (
    "Attic Diecast",
    "Bench & Bolt",
    "Carrousel Arts",
    "Diorama Union",
    "Étoile Miniatures",
    "Fine Gauge Works",
    "Gearbox Galleries",
    "Handmade Hulls",
    "Inkwell Replicas",
    "Jubilee Models",
    "Keystone Castings",
    "Low Relief Ltd.",
    "Master's Bench",
)

FEATURES = (
    "opening doors",
    "turning wheels",
    'a plate that says "No. 1"',
    "hand-painted trim",
    "a working steering wheel",
    "rivets true to scale",
    "a stand of dark wood",
)

SCALES = ("1:10", "1:12", "1:18", "1:18", "1:18", "1:24", "1:24", "1:32", "1:50", "1:72")

COMMENTS = (
    "Please ring before delivery.",
    "Customer asked for a later date; agreed.\nSecond gate, ask for the porter.",
    'Marked "fragile" twice, as last time',
    "Können wir die Kisten zusammen schicken? ",
    "It's the wrong colour, says the client: a credit note follows.",
    "Back\\slash and tab\tin one remark",
)
