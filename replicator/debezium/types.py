"""Decoding of JSON values into typed Spark columns, or the reason why not (types.md sections 2 to 5 and 7).

A row is parsed with the *wire* types below, so that numbers go straight into their type (Y1). Where that yields no
value it is parsed again with STRING, only to see whether something was there (``field_text.py``). :func:`decode`
compares the two: a value that does not fit is a problem, never NULL (Y2). Column functions only; ANSI mode makes no
difference.

A bare JSON number in a field whose logical type is text arrives as Spark rewrites it (``1.50`` becomes ``1.5``,
section 7). Declare such columns by what is sent, e.g. ``decimal_number(10,2)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import decimals, quoting, scalars, temporal
from replicator.debezium.decoding import (
    FROM_JSON_OPTIONS,
    NUL_CHARACTER,
    TYPE_MISMATCH,
    Decoded,
    Policies,
    from_struct,
    is_true,
    let,
    no_problem,
    reason_if_undecoded,
    to_struct,
)
from replicator.debezium.logical_types import Field, LogicalType
from replicator.debezium.scalars import NUL, REPLACEMENT
from replicator.errors import ConfigError

__all__ = ["TEXT_TYPES", "Decoded", "Policies", "decode", "wire_type"]

_DEFAULT_POLICIES = Policies()
_WIRE_OF_BITS = {16: "SMALLINT", 32: "INT", 64: "BIGINT"}

TEXT_TYPES = ("string", "json", "uuid", "xml", "ltree", "tsvector", "interval", "zoned_time")
"""Logical types whose values may be any text."""

_WKB = Field("wkb", LogicalType("bytes", encoding="base64"))
_SRID = Field("srid", LogicalType("int"))
_GEOMETRY_TYPES = {
    "point": LogicalType(
        "struct",
        fields=(
            Field("x", LogicalType("double"), optional=False),
            Field("y", LogicalType("double"), optional=False),
            _WKB,
            _SRID,
        ),
    ),
    "geometry": LogicalType("struct", fields=(_WKB, _SRID)),
}


def wire_type(logical: LogicalType) -> str:
    """The DDL with which ``from_json`` must read the field for :func:`decode`. Raises ConfigError if there is none."""
    return _decoder_of(logical).wire(logical)


def decode(
    logical: LogicalType,
    wire: Column,
    text: Column,
    policies: Policies = _DEFAULT_POLICIES,
    bare: Mapping[str, Column] | None = None,
) -> Decoded:
    """Decode a field to ``spark_type(logical)``, or to a reason of debezium.md R4.

    ``wire`` is the field as ``from_json`` reads it with ``wire_type(logical)``, ``text`` as it reads it with STRING:
    both NULL means JSON null or no such field. ``bare`` holds the probes (``quoting.probe_types``) of a value that must
    be quoted; without them it is taken for quoted. Raises ConfigError for a logical type that has no decoder.
    """
    family = _decoder_of(logical)
    if not bare:
        return family.decode(logical, wire, text, policies)
    is_bare = quoting.is_unquoted(bare)
    as_text = family.decode(logical, F.when(~is_bare, wire), text, policies)
    if quoting.EXACT not in bare:
        return Decoded(as_text.value, F.when(is_bare, TYPE_MISMATCH).otherwise(as_text.problem))
    number = decimals.decode(quoting.as_number(logical), bare[quoting.EXACT], text, policies)
    is_number = bare[quoting.NUMBER].isNotNull()
    problem = F.when(is_number, number.problem).when(is_bare, TYPE_MISMATCH).otherwise(as_text.problem)
    return Decoded(F.when(is_number, number.value).otherwise(as_text.value), problem)


@dataclass(frozen=True)
class _Decoder:
    wire: Callable[[LogicalType], str]
    decode: Callable[[LogicalType, Column, Column, Policies], Decoded]


def _decoder_of(logical: LogicalType) -> _Decoder:
    found = _DECODERS.get(logical.name)
    if found is None:
        raise ConfigError(f"values of type {str(logical)!r} cannot be decoded", fix="docs/types.md lists the types.")
    return found


def _struct_wire(logical: LogicalType) -> str:
    inner = (f"{names.quote_spark(field.name)}: {wire_type(field.logical)}" for field in logical.fields)
    return f"STRUCT<{', '.join(inner)}>"


def _array_wire(logical: LogicalType) -> str:
    # inner arrays are kept as text
    element = _element(logical)
    return "ARRAY<STRING>" if element.name == "array" else f"ARRAY<{wire_type(element)}>"


def _element(array: LogicalType) -> LogicalType:
    return array.element or LogicalType("string")


def _map(_: LogicalType, wire: Column, text: Column, policies: Policies) -> Decoded:
    has_nul = F.exists(F.concat(F.map_keys(wire), F.map_values(wire)), lambda part: is_true(part.contains(NUL)))
    mismatch = reason_if_undecoded(wire, text, TYPE_MISMATCH)
    if policies.nul == "replace":
        clean = F.transform_keys(wire, lambda key, __: F.translate(key, NUL, REPLACEMENT))
        value = F.transform_values(clean, lambda __, held: F.translate(held, NUL, REPLACEMENT))
        return Decoded(value, mismatch)
    return Decoded(wire, F.when(has_nul, NUL_CHARACTER).otherwise(mismatch))


def _sparse_vector(_: LogicalType, wire: Column, text: Column, __: Policies) -> Decoded:
    """Decode a vector, whose index-to-number map comes as an array of pairs (A7); a DOUBLE holds an index exactly."""
    is_pair = F.forall(
        wire["vector"],
        lambda pair: is_true((F.size(pair) == 2) & pair[0].isNotNull() & pair[1].isNotNull()),
    )
    entries = F.transform(wire["vector"], lambda pair: F.struct(pair[0].cast("int").alias("i"), pair[1].alias("v")))
    vector = F.struct(wire["dimensions"].alias("dimensions"), entries.alias("entries"))
    value = F.when(is_pair & wire["dimensions"].isNotNull(), vector)
    return Decoded(value, reason_if_undecoded(value, text, TYPE_MISMATCH))


def _struct(logical: LogicalType, wire: Column, text: Column, policies: Policies) -> Decoded:
    """Decode field by field; the first problem of a field is the column's."""
    ddl = ", ".join(f"{names.quote_spark(field.name)} STRING" for field in logical.fields)
    read = partial(F.from_json, text, options=FROM_JSON_OPTIONS)

    def part(field: Field, own: Column) -> Decoded:
        bare = {
            each: F.when(
                quoting.is_worth_probing(each, own), read(f"{names.quote_spark(field.name)} {kind}")[field.name]
            )
            for each, kind in (quoting.probe_types(field.logical) if quoting.is_required(field.logical) else {}).items()
        }
        return decode(field.logical, wire.getField(field.name), own, policies, bare)

    def fields(texts: Column) -> Column:
        parts = {field.name: part(field, texts.getField(field.name)) for field in logical.fields}
        missing = [
            F.when(texts.getField(field.name).isNull(), TYPE_MISMATCH) for field in logical.fields if not field.optional
        ]
        found = F.coalesce(*(part.problem for part in parts.values()), *missing, no_problem())
        return to_struct(
            Decoded(
                F.when(wire.isNotNull(), F.struct(*(part.value.alias(name) for name, part in parts.items()))),
                F.when(wire.isNotNull(), found).otherwise(reason_if_undecoded(wire, text, TYPE_MISMATCH)),
            )
        )

    return from_struct(let(read(ddl), fields))


def _array(logical: LogicalType, wire: Column, text: Column, policies: Policies) -> Decoded:
    """Decode element by element, keeping NULLs; the first problem of an element is the column's."""
    element = _element(logical)
    if element.name == "array":
        value = F.when(wire.isNotNull(), text)
        return Decoded(value, reason_if_undecoded(value, text, TYPE_MISMATCH))

    def one(element_text: Column, at: Column) -> Column:
        return to_struct(decode(element, F.get(wire, at), element_text, policies))

    def whole(parts: Column) -> Column:
        value = F.when(wire.isNotNull(), F.transform(parts, lambda part: part["value"]))
        # one mismatch makes Spark drop the whole array: its other elements then look mismatched too
        specific = _first_not_null(F.filter(parts["problem"], lambda problem: problem != TYPE_MISMATCH))
        bare = (
            F.when(text.rlike(quoting.UNQUOTED_ELEMENT), TYPE_MISMATCH)
            if quoting.is_required(element)
            else no_problem()
        )
        problem = F.coalesce(
            specific, _first_not_null(parts["problem"]), bare, reason_if_undecoded(value, text, TYPE_MISMATCH)
        )
        return to_struct(Decoded(value, problem))

    return from_struct(let(F.transform(F.from_json(text, "array<string>"), one), whole))


def _first_not_null(held: Column) -> Column:
    return F.get(F.filter(held, lambda item: item.isNotNull()), F.lit(0))


def _simple_decoder(wire: str, decoder: Callable[[LogicalType, Column, Column, Policies], Decoded]) -> _Decoder:
    return _Decoder(lambda _: wire, decoder)


def _geometry_decoder(shape: LogicalType) -> _Decoder:
    return _Decoder(lambda _: _struct_wire(shape), lambda _, wire, text, policies: _struct(shape, wire, text, policies))


_DECODERS: Mapping[str, _Decoder] = {
    **{name: _simple_decoder(_WIRE_OF_BITS[bits], scalars.integer) for name, bits in scalars.INTEGER_BITS.items()},
    **{name: _simple_decoder("STRING", scalars.string) for name in TEXT_TYPES},
    **{name: _Decoder(decimals.wire_type, decimals.decode) for name in ("decimal", "variable_decimal")},
    **{name: _Decoder(temporal.wire_type, temporal.decode) for name in temporal.NAMES},
    **{name: _geometry_decoder(shape) for name, shape in _GEOMETRY_TYPES.items()},
    "float": _simple_decoder("FLOAT", scalars.floating),
    "double": _simple_decoder("DOUBLE", scalars.floating),
    "boolean": _simple_decoder("BOOLEAN", scalars.boolean),
    "bytes": _simple_decoder("STRING", scalars.binary),
    "bits": _simple_decoder("STRING", scalars.bits),
    "enum": _simple_decoder("STRING", scalars.enum),
    "enum_set": _simple_decoder("STRING", scalars.enum_set),
    "map": _simple_decoder("MAP<STRING, STRING>", _map),
    "sparse_vector": _simple_decoder("STRUCT<dimensions: INT, vector: ARRAY<ARRAY<DOUBLE>>>", _sparse_vector),
    "struct": _Decoder(_struct_wire, _struct),
    "array": _Decoder(_array_wire, _array),
}
