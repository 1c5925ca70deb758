"""Offices, employees and customers: who sells and who buys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.sources.classicmodels import words
from infra.sources.classicmodels.shapes import SHAPES
from infra.sources.shape import Row, Value

if TYPE_CHECKING:
    from infra.sources.dice import Dice

LAB_EMPLOYEES = (1165, 1504, 1621)
"""The sales representatives that the lab's new customers name."""
LAB_CUSTOMER = 103
"""The customer that the lab moves an order to; the lab itself inserts 498, 500 and 501."""

_WITHOUT_REP = 22
_BLANKS = (
    ("contactFirstName", "{} ", 40),
    ("contactFirstName", " {}", 4),
    ("country", "{}  ", 2),
    ("city", " {}", 2),
    ("addressLine1", " {} ", 2),
    ("phone", "{} ", 1),
)
"""Column, how blanks surround it, and how many customers have it so: 51 together, no two the same customer."""


@dataclass(frozen=True)
class Parties:
    """Rows of three tables, and the customers that may order (they all have a sales representative)."""

    offices: tuple[Row, ...]
    employees: tuple[Row, ...]
    customers: tuple[Row, ...]
    buyers: tuple[int, ...]


def parties(dice: Dice, idle: int) -> Parties:
    """7 offices, 23 employees and 122 customers, of whom ``idle`` never order."""
    employees = _employees(dice)
    reps = tuple(int(str(row[0])) for row in employees[6:])
    numbers = (LAB_CUSTOMER, *sorted(dice.sample(range(LAB_CUSTOMER + 1, 498), 121)))
    resting = set(dice.sample(numbers[1:], idle))
    without_rep = set(dice.sample(sorted(resting), _WITHOUT_REP))
    customers = _customers(dice, numbers)
    for number, customer in zip(numbers, customers, strict=True):
        customer["salesRepEmployeeNumber"] = None if number in without_rep else dice.pick(reps)
    return Parties(
        offices=tuple(_office(dice, code) for code in range(1, 8)),
        employees=employees,
        customers=tuple(SHAPES["customers"].row(customer) for customer in customers),
        buyers=tuple(number for number in numbers if number not in resting),
    )


def _office(dice: Dice, code: int) -> Row:
    city, line1, line2, state, country, post_code, territory = words.OFFICES[code - 1]
    return (str(code), city, dice.digits("+## ### ####"), line1, line2, state, country, post_code, territory)


def _employees(dice: Dice) -> tuple[Row, ...]:
    """A president, two heads of department, three managers and the representatives; bosses come first."""
    numbers = sorted({*range(1002, 1002 + 20 * 29, 29), *LAB_EMPLOYEES})
    titles = ("President", "VP Sales", "VP Marketing", *("Sales Manager",) * 3, *("Sales Rep",) * 17)
    bosses = (None, numbers[0], numbers[0], *(numbers[1],) * 3)
    rows = []
    for index, (number, title) in enumerate(zip(numbers, titles, strict=True)):
        last, first = words.LAST_NAMES[index], dice.pick(words.FIRST_NAMES)
        mailbox = f"{first[0]}{last}".replace("'", "").lower()
        boss = bosses[index] if index < len(bosses) else dice.pick(numbers[3:6])
        office = "1" if index < 3 else str(dice.between(1, 7))
        extension = dice.digits("x####")
        rows.append((number, last, first, extension, f"{mailbox}@models.example", office, boss, title))
    return tuple(rows)


def _customers(dice: Dice, numbers: tuple[int, ...]) -> list[dict[str, Value]]:
    homes = dice.shuffled([country for country in words.COUNTRIES for _ in range(country.customers)])
    names = dice.shuffled([f"{name} {trade}" for name in words.LAST_NAMES for trade in words.TRADES])
    customers = [_customer(dice, *told) for told in zip(numbers, homes, names[: len(numbers)], strict=True)]
    for customer in dice.sample(customers, 22):
        customer["addressLine2"] = dice.pick(words.SECOND_LINES)
    for customer in dice.sample(customers, 7):
        customer["postalCode"] = None
    _accents(dice, customers)
    _blanks(dice, customers)
    return customers


def _customer(dice: Dice, number: int, home: words.Country, name: str) -> dict[str, Value]:
    return {
        "customerNumber": number,
        "customerName": name,
        "contactLastName": dice.pick(words.LAST_NAMES),
        "contactFirstName": dice.pick(words.FIRST_NAMES),
        "phone": dice.digits(home.phone),
        "addressLine1": f"{dice.between(1, 9999)} {dice.pick(words.STREETS)}",
        "addressLine2": None,
        "city": dice.pick(home.cities),
        "state": dice.pick(home.states) if home.states else None,
        "postalCode": dice.digits(home.post_code),
        "country": home.name,
        "creditLimit": dice.cents(0, 1_200_000) * 10 if dice.between(1, 5) > 1 else dice.cents(0, 0),
    }


def _accents(dice: Dice, customers: list[dict[str, Value]]) -> None:
    """21 customers have a contact, six of these also a company, that ASCII cannot write."""
    chosen = dice.sample(customers, 21)
    for index, customer in enumerate(chosen):
        name = dice.pick(words.ACCENTED_NAMES)
        customer["contactLastName"] = name
        if index < 6:
            customer["customerName"] = f"{name} {dice.pick(words.TRADES)}"


def _blanks(dice: Dice, customers: list[dict[str, Value]]) -> None:
    patterns = [(column, pattern) for column, pattern, count in _BLANKS for _ in range(count)]
    chosen = dice.sample(customers, len(patterns))
    for customer, (column, pattern) in zip(chosen, patterns, strict=True):
        customer[column] = pattern.replace("{}", str(customer[column]))
