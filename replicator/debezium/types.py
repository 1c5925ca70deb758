"""From a JSON value to a typed Spark column, or to the reason why not (types.md sections 2 to 5 and 7).

A row is parsed with the *wire* types below, so that numbers go straight into their type (Y1), and where that shows no
value once more with STRING, only to see whether something was there (``texts.py``). :func:`decode` compares the two:
a value that does not fit is a problem, never NULL (Y2). Column functions only; ANSI mode on or off gives the same.

What the text cannot show: a bare JSON number in a field whose logical type says text is taken as Spark rewrites it
(``1.50`` becomes ``1.5``, section 7). Declare such columns by what is sent, e.g. ``decimal_number(10,2)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import decimals, quoted, scalars, temporal
from replicator.debezium.decoding import (
    AS_NAMED,
    NUL_CHARACTER,
    TYPE_MISMATCH,
    Decoded,
    Policies,
    bound,
    complain,
    is_true,
    let,
    nothing,
    packed,
)
from replicator.debezium.logical import Field, Logical
from replicator.debezium.scalars import NUL, REPLACEMENT
from replicator.errors import ConfigError

__all__ = ["TEXTS", "Decoded", "Policies", "decode", "wire_type"]

_DEFAULT_POLICIES = Policies()
_WIRE_OF_BITS = {16: "SMALLINT", 32: "INT", 64: "BIGINT"}

TEXTS = ("string", "json", "uuid", "xml", "ltree", "tsvector", "interval", "zoned_time")
"""Logical types whose values are any text."""

_WKB = Field("wkb", Logical("bytes", encoding="base64"))
_SRID = Field("srid", Logical("int"))
_SHAPES = {
    "point": Logical(
        "struct",
        fields=(
            Field("x", Logical("double"), optional=False),
            Field("y", Logical("double"), optional=False),
            _WKB,
            _SRID,
        ),
    ),
    "geometry": Logical("struct", fields=(_WKB, _SRID)),
}


def wire_type(logical: Logical) -> str:
    """DDL of what ``from_json`` must read so that :func:`decode` understands it. Raises ConfigError if it cannot."""
    return _family(logical).wire(logical)


def decode(
    logical: Logical,
    wire: Column,
    text: Column,
    policies: Policies = _DEFAULT_POLICIES,
    bare: Mapping[str, Column] | None = None,
) -> Decoded:
    """The value of type ``spark_type(logical)``, or a reason of debezium.md R4.

    ``wire`` is the field as ``from_json`` read it with ``wire_type(logical)``, ``text`` as it read it with STRING:
    both NULL means JSON null or no such field. ``bare`` are the readings of what must be quoted; without them it is
    taken for quoted. Raises ConfigError for a logical type that has no decoder.
    """
    family = _family(logical)
    if not bare:
        return family.decode(logical, wire, text, policies)
    is_bare = quoted.is_bare(bare)
    as_text = family.decode(logical, F.when(~is_bare, wire), text, policies)
    if quoted.EXACT not in bare:
        return Decoded(as_text.value, F.when(is_bare, TYPE_MISMATCH).otherwise(as_text.problem))
    number = decimals.decode(quoted.as_number(logical), bare[quoted.EXACT], text, policies)
    is_number = bare[quoted.NUMBER].isNotNull()
    problem = F.when(is_number, number.problem).when(is_bare, TYPE_MISMATCH).otherwise(as_text.problem)
    return Decoded(F.when(is_number, number.value).otherwise(as_text.value), problem)


@dataclass(frozen=True)
class _Family:
    wire: Callable[[Logical], str]
    decode: Callable[[Logical, Column, Column, Policies], Decoded]


def _family(logical: Logical) -> _Family:
    found = _FAMILIES.get(logical.name)
    if found is None:
        raise ConfigError(f"values of type {str(logical)!r} cannot be decoded", mend="docs/types.md lists the types.")
    return found


def _struct_wire(logical: Logical) -> str:
    inner = (f"{names.spark(field.name)}: {wire_type(field.logical)}" for field in logical.fields)
    return f"STRUCT<{', '.join(inner)}>"


def _array_wire(logical: Logical) -> str:
    # an inner array is kept as text
    element = _element(logical)
    return "ARRAY<STRING>" if element.name == "array" else f"ARRAY<{wire_type(element)}>"


def _element(array: Logical) -> Logical:
    return array.element or Logical("string")


def _map(_: Logical, wire: Column, text: Column, policies: Policies) -> Decoded:
    has_nul = F.exists(F.concat(F.map_keys(wire), F.map_values(wire)), lambda part: is_true(part.contains(NUL)))
    mismatch = complain(wire, text, TYPE_MISMATCH)
    if policies.nul == "replace":
        clean = F.transform_keys(wire, lambda key, __: F.translate(key, NUL, REPLACEMENT))
        value = F.transform_values(clean, lambda __, held: F.translate(held, NUL, REPLACEMENT))
        return Decoded(value, mismatch)
    return Decoded(wire, F.when(has_nul, NUL_CHARACTER).otherwise(mismatch))


def _sparse_vector(_: Logical, wire: Column, text: Column, __: Policies) -> Decoded:
    """The map from index to number comes as an array of pairs (A7); an index is exact as a DOUBLE."""
    is_pair = F.forall(
        wire["vector"],
        lambda pair: is_true((F.size(pair) == 2) & pair[0].isNotNull() & pair[1].isNotNull()),
    )
    entries = F.transform(wire["vector"], lambda pair: F.struct(pair[0].cast("int").alias("i"), pair[1].alias("v")))
    vector = F.struct(wire["dimensions"].alias("dimensions"), entries.alias("entries"))
    value = F.when(is_pair & wire["dimensions"].isNotNull(), vector)
    return Decoded(value, complain(value, text, TYPE_MISMATCH))


def _struct(logical: Logical, wire: Column, text: Column, policies: Policies) -> Decoded:
    """Field by field; the first problem of a field is the column's."""
    ddl = ", ".join(f"{names.spark(field.name)} STRING" for field in logical.fields)
    read = partial(F.from_json, text, options=AS_NAMED)

    def part(field: Field, own: Column) -> Decoded:
        bare = {
            each: F.when(quoted.looks_so(each, own), read(f"{names.spark(field.name)} {kind}")[field.name])
            for each, kind in (quoted.readings(field.logical) if quoted.must_be(field.logical) else {}).items()
        }
        return decode(field.logical, wire.getField(field.name), own, policies, bare)

    def fields(texts: Column) -> Column:
        parts = {field.name: part(field, texts.getField(field.name)) for field in logical.fields}
        missing = [
            F.when(texts.getField(field.name).isNull(), TYPE_MISMATCH) for field in logical.fields if not field.optional
        ]
        found = F.coalesce(*(part.problem for part in parts.values()), *missing, nothing())
        return packed(
            Decoded(
                F.when(wire.isNotNull(), F.struct(*(part.value.alias(name) for name, part in parts.items()))),
                F.when(wire.isNotNull(), found).otherwise(complain(wire, text, TYPE_MISMATCH)),
            )
        )

    return bound(let(read(ddl), fields))


def _array(logical: Logical, wire: Column, text: Column, policies: Policies) -> Decoded:
    """Element by element, NULLs kept; the first problem of an element is the column's."""
    element = _element(logical)
    if element.name == "array":
        value = F.when(wire.isNotNull(), text)
        return Decoded(value, complain(value, text, TYPE_MISMATCH))

    def one(element_text: Column, at: Column) -> Column:
        return packed(decode(element, F.get(wire, at), element_text, policies))

    def whole(parts: Column) -> Column:
        value = F.when(wire.isNotNull(), F.transform(parts, lambda part: part["value"]))
        # one misfit makes Spark drop the whole array: its other elements then look mismatched too
        told = _first(F.filter(parts["problem"], lambda problem: problem != TYPE_MISMATCH))
        bare = F.when(text.rlike(quoted.ELEMENT), TYPE_MISMATCH) if quoted.must_be(element) else nothing()
        problem = F.coalesce(told, _first(parts["problem"]), bare, complain(value, text, TYPE_MISMATCH))
        return packed(Decoded(value, problem))

    return bound(let(F.transform(F.from_json(text, "array<string>"), one), whole))


def _first(held: Column) -> Column:
    return F.get(F.filter(held, lambda item: item.isNotNull()), F.lit(0))


def _plain(wire: str, decoder: Callable[[Logical, Column, Column, Policies], Decoded]) -> _Family:
    return _Family(lambda _: wire, decoder)


def _shaped(shape: Logical) -> _Family:
    return _Family(lambda _: _struct_wire(shape), lambda _, wire, text, policies: _struct(shape, wire, text, policies))


_FAMILIES: Mapping[str, _Family] = {
    **{name: _plain(_WIRE_OF_BITS[bits], scalars.integer) for name, bits in scalars.INTEGER_BITS.items()},
    **{name: _plain("STRING", scalars.string) for name in TEXTS},
    **{name: _Family(decimals.wire_type, decimals.decode) for name in ("decimal", "variable_decimal")},
    **{name: _Family(temporal.wire_type, temporal.decode) for name in temporal.NAMES},
    **{name: _shaped(shape) for name, shape in _SHAPES.items()},
    "float": _plain("FLOAT", scalars.floating),
    "double": _plain("DOUBLE", scalars.floating),
    "boolean": _plain("BOOLEAN", scalars.boolean),
    "bytes": _plain("STRING", scalars.binary),
    "bits": _plain("STRING", scalars.bits),
    "enum": _plain("STRING", scalars.enum),
    "enum_set": _plain("STRING", scalars.enum_set),
    "map": _plain("MAP<STRING, STRING>", _map),
    "sparse_vector": _plain("STRUCT<dimensions: INT, vector: ARRAY<ARRAY<DOUBLE>>>", _sparse_vector),
    "struct": _Family(_struct_wire, _struct),
    "array": _Family(_array_wire, _array),
}
