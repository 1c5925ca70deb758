"""Invented names, places and texts. Nobody here exists."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Country:
    """Where customers and suppliers are, and how post codes and phones are written there.

    ``post_code`` and ``phone`` are patterns: ``#`` stands for a digit. ``regions`` is empty where nobody writes one.
    """

    name: str
    cities: tuple[str, ...]
    regions: tuple[str, ...]
    post_code: str
    phone: str


COUNTRIES = (
    Country("Germany", ("Altbruck", "Hochfeld", "Münsterau"), (), "#####", "0###-######"),
    Country("USA", ("Cedar Falls", "Port Alder", "Lakemont"), ("NM", "OR", "WA", "ID"), "#####", "(###) 555-####"),
    Country("France", ("Pont-Clair", "Valbrume", "Évrelles"), (), "#####", "##.##.##.##"),
    Country("Brazil", ("Porto Sereno", "Rio Manso"), ("SP", "RJ"), "#####-###", "(##) 555-####"),
    Country("UK", ("Ashby Moor", "Fenwick"), ("Kent", "Essex"), "WX# #DP", "(###) 555-####"),
    Country("Spain", ("Torrealta", "Villaluz"), (), "28###", "(91) ### ## ##"),
    Country("Mexico", ("San Abril", "Monte Azul"), (), "05###", "(5) 555-####"),
    Country("Sweden", ("Lindsund", "Björkvik"), (), "S-### ##", "0###-## ## ##"),
    Country("Italy", ("Montechiaro", "Borgo Rosso"), (), "241##", "035-######"),
    Country("Switzerland", ("Rebstein", "Clairval"), (), "1###", "0###-######"),
)

NAMED_CUSTOMERS = {
    "ALFKI": "Alfons Kiesel Feinkost",
    "VINET": "Vinet & Filles",
    "RATTC": "Ratterly Corner Store",
    "RICSU": "Richter Supermarkt",
    "FISSA": "Fischsalon Sandberg",
    "PARIS": "Paris im Hof",
}
"""The customers whose ids the scenario's steps name."""

STEMS = (
    *("Ambrose", "Bellamy", "Corvin", "Dahlberg", "Esposito", "Fontane", "Gallow", "Hanaway", "Ilmari", "Jorgen"),
    *("Kestrel", "Lombard", "Morgenrot", "Nogueira", "Ottaviani", "Pellegrin", "Quillon", "Rosario", "Sommerfeld"),
    *("Tamarind", "Ulvsson", "Vasquez", "Whitmore", "Xavier", "Yarrow", "Zimbro"),
)
"""What companies are called; no two begin with the same three letters."""
TRADES = ("Delicatessen", "Market", "Pantry", "Stores", "Tavern")
"""What companies do; no two begin with the same two letters."""

SHIPPERS = ("Swift Parcel", "Joint Freight", "Federal Shipping", "Harbour Lines", "Northern Post", "Two Wheels")
"""Number 3 is the one that order 10248 names."""

REGIONS = ("East", "West", "North", "South")

LAST_NAMES = (
    *("Abernathy", "Brandt", "Castellane", "Delgado", "Eriksen", "Farrow", "Gruber", "Holloway", "Iversen"),
    *("Jansson", "Keller", "Lindgren", "Moreau", "Núñez", "Oakes", "Petrov", "Quist", "Rossi", "Schäfer", "Tanaka"),
)
FIRST_NAMES = (
    *("Anna", "Bruno", "Clara", "David", "Elena", "Felix", "Greta", "Hugo", "Iris", "Jonas"),
    *("Karin", "Luca", "Marta", "Nils", "Olga", "Paul", "Rosa", "Stefan", "Thea", "Viktor"),
)
CONTACT_TITLES = ("Owner", "Purchasing Clerk", "Sales Agent", "Head of Accounts", "Buyer", "Assistant Buyer")
STREETS = ("Mill Lane", "Harbour Road", "Rue des Tilleuls", "Gartenweg", "Via del Pozzo", "Calle Mayor", "Storgatan")

CATEGORIES = (
    # name, description, what is sold, how it is packed
    ("Drinks", "Teas, coffees, juices, ales", ("Tea", "Coffee", "Ale", "Juice"), "24 x 330 ml"),
    ("Sauces", "Sweet and salty, for bread and roast", ("Chutney", "Mustard", "Syrup", "Relish"), "12 x 250 ml"),
    ("Sweets", "Cakes, chocolate and toffee", ("Fudge", "Wafers", "Nougat", "Biscuits"), "20 x 100 g"),
    ("Dairy", "Cheeses and butter", ("Blue Cheese", "Goat Cheese", "Butter", "Ricotta"), "10 x 500 g"),
    ("Grain", "Bread, pasta, flour", ("Crispbread", "Noodles", "Semolina", "Gnocchi"), "30 x 400 g"),
    ("Meat", "Fresh and cured", ("Ham", "Pâté", "Salami", "Roast"), "8 x 1 kg"),
    (
        "Fruit & Greens",
        "Dried fruit, pickles, bean curd",
        ("Dried Pears", "Tofu", "Sauerkraut", "Olives"),
        "25 x 300 g",
    ),
    ("Fish", "Salted, smoked, in tins", ("Herring", "Crab Meat", "Anchovies", "Smoked Eel"), "16 x 200 g"),
)
ORIGINS = ("Alpine", "Baltic", "Coastal", "Dark", "Family", "Golden", "Highland", "Island", "Old Mill", "Valley")
