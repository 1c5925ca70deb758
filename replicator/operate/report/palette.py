"""The colours of the page and of its charts, once by day and once by night.

Series are told apart by blue and orange, which stay apart under every common kind of colour blindness, and by
lightness; what is only there to be complete is grey. Texts have a contrast of at least 4.5 to 1 with what they stand
on, marks of 3.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Palette:
    """Colours as ``#rrggbb``.

    ``page`` and ``card`` are what things stand on, ``line`` divides, ``ink`` and ``faint`` are texts; ``first``,
    ``first_soft`` and ``second`` are series, ``rest`` the others; ``bad`` warns, in text.
    """

    page: str
    card: str
    line: str
    ink: str
    faint: str
    first: str
    first_soft: str
    second: str
    rest: str
    bad: str


LIGHT = Palette(
    page="#f4f5f7",
    card="#ffffff",
    line="#d9dde3",
    ink="#18202b",
    faint="#566070",
    first="#1457a8",
    first_soft="#5b8fca",
    second="#c2510a",
    rest="#858f9d",
    bad="#b3261e",
)
DARK = Palette(
    page="#0e1218",
    card="#171d26",
    line="#2d3643",
    ink="#e8ecf2",
    faint="#a3aebd",
    first="#6db3ff",
    first_soft="#2f6cab",
    second="#ffa24d",
    rest="#8390a3",
    bad="#ff8a80",
)


def contrast(one: str, other: str) -> float:
    """How well two colours can be told apart, 1 to 21, as WCAG 2 defines it."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def text_on(colour: str, palette: Palette) -> str:
    """The colour of a text that stands on a mark."""
    return max((palette.ink, palette.card), key=lambda text: contrast(text, colour))


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
