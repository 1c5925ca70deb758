"""The colours of the page and of its charts, in a light and a dark theme.

Series are distinguished by blue and orange, which remain distinct under every common kind of colour blindness, and by
lightness; remainders are grey. Texts have a contrast of at least 4.5 to 1 with their background, marks of 3.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Palette:
    """Colours as ``#rrggbb``.

    ``page`` and ``card`` are backgrounds, ``line`` is for separators, ``ink`` and ``faint`` are for texts; ``first``,
    ``first_soft`` and ``second`` are for series, ``rest`` for the remainder; ``bad`` is for warning texts.
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
    """Return the contrast ratio of two colours, 1 to 21, as WCAG 2 defines it."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def text_on(colour: str, palette: Palette) -> str:
    """Return the colour of a text on a mark of this colour."""
    return max((palette.ink, palette.card), key=lambda text: contrast(text, colour))


def _luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
