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
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import decimals, quoted, temporal
from replicator.debezium.decoding import (
    INTEGER_OVERFLOW,
    INVALID_BASE64,
    NUL_CHARACTER,
    TYPE_MISMATCH,
    Decoded,
    Policies,
    bound,
    complain,
    integer_reason,
    is_true,
    let,
    nothing,
    packed,
)
from replicator.debezium.logical import GUESSED_DOUBLE, Field, Logical, spark_type
from replicator.errors import ConfigError

__all__ = ["INFINITE", "NUL", "TEXTS", "Decoded", "Policies", "decode", "wire_type"]

_DEFAULT_POLICIES = Policies()
_WIRE_OF_BITS = {16: "SMALLINT", 32: "INT", 64: "BIGINT"}
_INTEGER_BITS = {
    "smallint": 16,
    "int": 32,
    "bigint": 64,
    "year": 32,
    "micro_duration": 64,
    "nano_duration": 64,
}
INFINITE = (float("inf"), float("-inf"))
"""What Spark reads a number as that is too large for its type, and a word for infinity."""
TEXTS = ("string", "json", "uuid", "xml", "ltree", "tsvector", "interval", "zoned_time")
"""Logical types whose values are any text."""
_TWO_64 = Decimal(2**64)
NUL, _REPLACEMENT = "\u0000", "\ufffd"
"""What a text may not hold, and what a policy puts in its place."""
_BITS_BYTES = 8
_DOUBLE_DIGITS = 15
"""So many digits of any number a DOUBLE keeps."""

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
        raise ConfigError(
            f"values of type {str(logical)!r} cannot be decoded", mend="types.md section 2 lists the types."
        )
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


def _integer(logical: Logical, wire: Column, text: Column, _: Policies) -> Decoded:
    problem = complain(wire, text, integer_reason(text, _INTEGER_BITS[logical.name]))
    if logical.name != "bigint":
        return Decoded(wire, problem)
    if logical.unsigned:
        # handling ``long`` wraps values from 2^63 on (section 5)
        number = wire.cast("decimal(20,0)")
        wrapped = (number + F.lit(_TWO_64)).cast("decimal(20,0)")
        return Decoded(F.when(wire < 0, wrapped).otherwise(number), problem)
    return Decoded(wire, problem)


def _floating(logical: Logical, wire: Column, text: Column, _: Policies) -> Decoded:
    """NaN and infinities come quoted; a literal too large for the type is no infinity. ``text`` of a GUESSED_DOUBLE is
    the record's own.
    """
    is_infinite = wire.isin(*INFINITE)
    is_word = text.rlike("^[+-]?(Infinity|INF)$")
    value = F.when(~is_infinite | is_word, wire)
    if logical == GUESSED_DOUBLE:
        digits = _significant(text)
        is_rounded = (F.length(digits) > _DOUBLE_DIGITS) & (digits != _significant(wire.cast("string")))
        value = F.when(~is_rounded, value)
    return Decoded(value, complain(value, text, TYPE_MISMATCH))


def _significant(number: Column) -> Column:
    """The digits of a number from the first to the last that is not 0."""
    return F.btrim(F.regexp_replace(number, "[eE].*|[-.]", ""), F.lit("0"))


def _boolean(_: Logical, wire: Column, text: Column, __: Policies) -> Decoded:
    """``true`` and ``false``, and the 0 and 1 of a TINYINT(1) snapshot."""
    value = (
        F.when(wire.isNotNull(), wire)
        .when(text == "1", F.lit(1).cast("boolean"))
        .when(text == "0", F.lit(0).cast("boolean"))
    )
    return Decoded(value, complain(value, text, TYPE_MISMATCH))


def _string(_: Logical, wire: Column, text: Column, policies: Policies) -> Decoded:
    mismatch = complain(wire, text, TYPE_MISMATCH)
    if policies.nul == "replace":
        return Decoded(F.translate(wire, NUL, _REPLACEMENT), mismatch)
    return Decoded(wire, F.when(wire.contains(NUL), NUL_CHARACTER).otherwise(mismatch))


def _bytes(logical: Logical, wire: Column, text: Column, _: Policies) -> Decoded:
    if logical.encoding == "hex":
        is_hex = wire.rlike("^([0-9a-fA-F]{2})*$")
        value = F.when(is_hex, F.try_to_binary(wire, F.lit("hex")))
        return Decoded(value, complain(value, text, TYPE_MISMATCH))
    plain = F.translate(wire, "-_", "+/") if logical.encoding == "base64url" else wire
    value = F.try_to_binary(plain, F.lit("base64"))
    return Decoded(value, complain(value, text, INVALID_BASE64))


def _bits(logical: Logical, wire: Column, text: Column, _: Policies) -> Decoded:
    """Little-endian bytes; empty bytes are zero (debezium-measured Z1.11)."""
    data = F.try_to_binary(wire, F.lit("base64"))
    if spark_type(logical) == "BINARY":
        return Decoded(data, complain(data, text, INVALID_BASE64))
    digits = F.hex(data)
    big_endian = F.concat(*(F.substring(digits, 2 * at + 1, 2) for at in reversed(range(_BITS_BYTES))))
    number = F.conv(big_endian, 16, 10).cast("decimal(20,0)")
    fits = (F.length(data).between(1, _BITS_BYTES)) & (number < F.lit(Decimal(2 ** (logical.length or 0))))
    value = F.when(F.length(data) == 0, F.lit(0)).when(fits, number).cast("bigint")
    reason = F.when(data.isNull(), INVALID_BASE64).otherwise(INTEGER_OVERFLOW)
    return Decoded(value, complain(value, text, reason))


def _enum(logical: Logical, wire: Column, text: Column, policies: Policies) -> Decoded:
    """MariaDB's stream puts a backslash before a comma where its snapshot does not (measured Z1.11)."""
    as_text = _string(logical, wire, text, policies)
    return Decoded(F.replace(as_text.value, F.lit("\\,"), F.lit(",")), as_text.problem)


def _enum_set(logical: Logical, wire: Column, text: Column, policies: Policies) -> Decoded:
    as_text = _string(logical, wire, text, policies)
    members = F.when(as_text.value == "", F.array().cast("array<string>")).otherwise(F.split(as_text.value, ","))
    return Decoded(F.when(as_text.value.isNotNull(), members), as_text.problem)


def _map(_: Logical, wire: Column, text: Column, policies: Policies) -> Decoded:
    has_nul = F.exists(F.concat(F.map_keys(wire), F.map_values(wire)), lambda part: is_true(part.contains(NUL)))
    mismatch = complain(wire, text, TYPE_MISMATCH)
    if policies.nul == "replace":
        clean = F.transform_keys(wire, lambda key, __: F.translate(key, NUL, _REPLACEMENT))
        value = F.transform_values(clean, lambda __, held: F.translate(held, NUL, _REPLACEMENT))
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

    def part(field: Field, own: Column) -> Decoded:
        bare = {
            each: F.when(quoted.looks_so(each, own), F.from_json(text, f"{names.spark(field.name)} {kind}")[field.name])
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

    return bound(let(F.from_json(text, ddl), fields))


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
    **{name: _plain(_WIRE_OF_BITS[bits], _integer) for name, bits in _INTEGER_BITS.items()},
    **{name: _plain("STRING", _string) for name in TEXTS},
    **{name: _Family(decimals.wire_type, decimals.decode) for name in ("decimal", "variable_decimal")},
    **{name: _Family(temporal.wire_type, temporal.decode) for name in temporal.NAMES},
    **{name: _shaped(shape) for name, shape in _SHAPES.items()},
    "float": _plain("FLOAT", _floating),
    "double": _plain("DOUBLE", _floating),
    "boolean": _plain("BOOLEAN", _boolean),
    "bytes": _plain("STRING", _bytes),
    "bits": _plain("STRING", _bits),
    "enum": _plain("STRING", _enum),
    "enum_set": _plain("STRING", _enum_set),
    "map": _plain("MAP<STRING, STRING>", _map),
    "sparse_vector": _plain("STRUCT<dimensions: INT, vector: ARRAY<ARRAY<DOUBLE>>>", _sparse_vector),
    "struct": _Family(_struct_wire, _struct),
    "array": _Family(_array_wire, _array),
}
