"""Logical types of columns, and the types that they have in silver (types.md sections 2, 6 and 8).

Pure Python: configuration can be checked without Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from replicator import names
from replicator.debezium.type_names import SIMPLE_TYPES, SUFFIX_OF_ENCODING, unknown_type

MAX_PRECISION = 38
"""Digits that Spark's DECIMAL can hold."""


@dataclass(frozen=True)
class LogicalType:
    """The type of one column, by meaning and by how its values are written on the wire.

    ``name`` is the short form without arguments. ``precision`` and ``scale`` belong to ``decimal`` and to a
    ``variable_decimal`` that is to be kept as DECIMAL; a negative scale is kept as the source has it.
    ``length`` is the number of bits of ``bits``. ``unsigned`` marks a MySQL BIGINT UNSIGNED (section 5).
    ``encoding`` is how values are written, which a schema does not say: decimals ``base64`` (mode ``precise``),
    ``text`` (mode ``string``), ``number`` (converter's NUMERIC format) or ``connect`` (base64 or a number, seen from
    each value); bytes ``base64``, or ``base64text``, ``base64url`` and ``hex``, which a schema block calls a
    string; ``object`` for JSON that is not sent as a text; GUESSED_DOUBLE has one of its own. ``element`` belongs to
    ``array``, ``fields`` to ``struct``.
    """

    name: str
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    unsigned: bool = False
    encoding: str = ""
    element: LogicalType | None = None
    fields: tuple[Field, ...] = ()

    def __str__(self) -> str:
        """The short form; ``type_parser.parse_type`` reads it back (structs excepted)."""
        if self.element is not None:
            return f"array<{self.element}>"
        if self.name == "struct":
            return "struct<" + ", ".join(f"{field.name}: {field.logical}" for field in self.fields) + ">"
        suffix = SUFFIX_OF_ENCODING.get((self.name, self.encoding), "")
        numbers = [n for n in (self.length, self.precision, self.scale) if n is not None]
        arguments = f"({','.join(map(str, numbers))})" if numbers else ""
        return f"{self.name}{suffix}{arguments}{' unsigned' if self.unsigned else ''}"


GUESSED_DOUBLE = LogicalType("double", encoding="guessed")
"""The type of an undescribed column of numbers; a number that a DOUBLE would round does not fit (types.md Y2, Y14)."""


@dataclass(frozen=True)
class Field:
    """A column as a Connect schema describes it. ``default`` is the schema's, None if it has none (G1); it may be any
    JSON value, also an unhashable one.
    """

    name: str
    logical: LogicalType
    optional: bool = True
    default: object = field(default=None, hash=False)


def decimal_bounds(logical: LogicalType) -> tuple[int, int] | None:
    """``(precision, scale)`` of the DECIMAL that holds a decimal's values exactly; None if only STRING can.

    A negative scale adds digits before the point; a scale above the precision adds zeros after it.
    """
    if logical.precision is None:
        return None
    scale = max(logical.scale or 0, 0)
    precision = max(logical.precision - min(logical.scale or 0, 0), scale)
    return (precision, scale) if precision <= MAX_PRECISION else None


def spark_type(logical: LogicalType) -> str:
    """The silver type as Spark DDL text (types.md section 2). Raises ConfigError for an unknown name."""
    if logical.name in ("decimal", "variable_decimal"):
        bounds = decimal_bounds(logical)
        return f"DECIMAL({bounds[0]},{bounds[1]})" if bounds else "STRING"
    if logical.unsigned and logical.name == "bigint":
        return "DECIMAL(20,0)"
    if logical.name == "bits":
        return "BIGINT" if (logical.length or 0) <= 63 else "BINARY"
    if logical.name == "array" and logical.element:
        # nested arrays are kept as their JSON text
        return "STRING" if logical.element.name == "array" else f"ARRAY<{spark_type(logical.element)}>"
    if logical.name == "struct":
        inner = (f"{names.quote_spark(field.name)}: {spark_type(field.logical)}" for field in logical.fields)
        return f"STRUCT<{', '.join(inner)}>"
    if logical.name not in SIMPLE_TYPES:
        raise unknown_type(logical.name)
    return SIMPLE_TYPES[logical.name]
