"""Who sells, who delivers and who buys: suppliers, shippers, territories, employees and customers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from infra.sources.northwind import words
from infra.sources.northwind.shapes import SHAPES

if TYPE_CHECKING:
    from infra.sources.dice import Dice
    from infra.sources.shape import Row, Value

CUSTOMERS, SUPPLIERS, TERRITORIES, SERVED = 91, 29, 53, 49

_HEAD, _MANAGER = 2, 5
_BOSSES = (_HEAD, None, _HEAD, _HEAD, _HEAD, _MANAGER, _MANAGER, _HEAD, _MANAGER)
"""Whom employees 1 to 9 report to."""


@dataclass(frozen=True)
class Field:
    """Where the employees work: territories, and who serves which; four territories are nobody's."""

    region: tuple[Row, ...]
    territories: tuple[Row, ...]
    employees: tuple[Row, ...]
    employee_territories: tuple[Row, ...]


def field(dice: Dice) -> Field:
    """4 regions, 53 territories, 9 employees of whom each serves at least one territory, 49 pairs."""
    codes = sorted(dice.sample(range(1000, 100_000), TERRITORIES))
    territories = tuple(
        (f"{code:05}", f"{dice.pick(words.ORIGINS)} {dice.pick(words.STEMS)}", dice.between(1, len(words.REGIONS)))
        for code in codes
    )
    served = dice.sample([code for code, _, _ in territories], SERVED)
    employees = range(1, len(_BOSSES) + 1)
    servants = [*employees, *(dice.pick(employees) for _ in served[len(employees) :])]
    return Field(
        region=tuple(enumerate(words.REGIONS, start=1)),
        territories=territories,
        employees=tuple(_employee(dice, number, boss) for number, boss in zip(employees, _BOSSES, strict=True)),
        employee_territories=tuple(sorted(zip(servants, served, strict=True))),
    )


def shippers(dice: Dice) -> tuple[Row, ...]:
    """6 shippers."""
    return tuple((number, name, dice.digits("(503) 555-####")) for number, name in enumerate(words.SHIPPERS, start=1))


def suppliers(dice: Dice) -> tuple[Row, ...]:
    """29 suppliers, few with a homepage."""
    names = dice.sample([f"{stem} & {last}" for stem in words.STEMS for last in words.LAST_NAMES], SUPPLIERS)
    rows = []
    for number, name in enumerate(names, start=1):
        homepage = f"https://supplier{number}.example/" if dice.between(1, 5) == 1 else None
        rows.append(SHAPES["suppliers"].row({"supplier_id": number, "homepage": homepage, **_company(dice, name)}))
    return tuple(rows)


def customers(dice: Dice) -> tuple[Row, ...]:
    """91 customers, by id: five letters, of the company's name."""
    others = {f"{stem[:3]}{trade[:2]}".upper(): f"{stem} {trade}" for stem in words.STEMS for trade in words.TRADES}
    chosen = dice.sample(sorted(others), CUSTOMERS - len(words.NAMED_CUSTOMERS))
    names = words.NAMED_CUSTOMERS | {code: others[code] for code in chosen}
    shape = SHAPES["customers"]
    return tuple(shape.row({"customer_id": code, **_company(dice, names[code])}) for code in sorted(names))


def _company(dice: Dice, name: str) -> dict[str, Value]:
    home = dice.pick_early(words.COUNTRIES)
    return {
        "company_name": name,
        "contact_name": f"{dice.pick(words.FIRST_NAMES)} {dice.pick(words.LAST_NAMES)}",
        "contact_title": dice.pick(words.CONTACT_TITLES),
        "address": f"{dice.between(1, 999)} {dice.pick(words.STREETS)}",
        "city": dice.pick(home.cities),
        "region": dice.pick(home.regions) if home.regions else None,
        "postal_code": dice.digits(home.post_code),
        "country": home.name,
        "phone": dice.digits(home.phone),
        "fax": dice.digits(home.phone) if dice.between(1, 4) > 1 else None,
    }


def _employee(dice: Dice, number: int, boss: int | None) -> Row:
    first, last = words.FIRST_NAMES[number], words.LAST_NAMES[number]
    title = "Head of Sales" if boss is None else "Sales Manager" if number == _MANAGER else "Sales Clerk"
    born = date(1940, 1, 1) + timedelta(days=dice.between(0, 9_000))
    home = dice.pick(words.COUNTRIES)
    record: dict[str, Value] = {
        "employee_id": number,
        "last_name": last,
        "first_name": first,
        "title": title,
        "title_of_courtesy": dice.pick(("Ms.", "Mr.", "Dr.")),
        "birth_date": born,
        "hire_date": date(1992, 4, 1) + timedelta(days=dice.between(0, 900)),
        "address": f"{dice.between(1, 999)} {dice.pick(words.STREETS)}\nFloor {dice.between(1, 9)}",
        "city": dice.pick(home.cities),
        "region": dice.pick(home.regions) if home.regions else None,
        "postal_code": dice.digits(home.post_code),
        "country": home.name,
        "home_phone": dice.digits(home.phone),
        "extension": dice.digits("####"),
        "notes": f'{first} says "{dice.pick(words.ORIGINS)} or nothing", and writes it \\{last}\\.\n\tFluent in café.',
        "reports_to": boss,
        "photo_path": f"https://photos.example/{number}.png",
    }
    return SHAPES["employees"].row(record)
