"""Cells: the values of a row under short names, between the parsed structs and the columns of a change.

With ``reasons``, ``_c<i>`` holds a value together with its problem. Without, it holds the value alone, and ``_s<i>`` a
marker for a cheap check whether the value is doubtful (``debezium/problem_precheck.py``). In a batch without a doubt,
which nearly all are, the reasons are never computed: they are most of the cost of decoding (decision 0057).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium import field_text, problem_precheck, quoting, types, unavailable
from replicator.debezium.decoding import Decoded
from replicator.debezium.logical_types import GUESSED_DOUBLE, LogicalType
from replicator.debezium.placeholder import Placeholder
from replicator.debezium.schema import Form
from replicator.jvm import expressions

ROW, RAW = "_row", "_raw"
"""The columns with the parsed row, and with the raw text of those of its columns that need it."""


@dataclass(frozen=True)
class Cells:
    """The cells of the rows of a form. With a ``placeholder`` some values may not have been sent (debezium.md E4)."""

    form: Form
    placeholder: Placeholder | None
    reasons: bool

    def columns(self) -> dict[str, Column]:
        """All cells, as expressions over ROW and RAW."""
        raw = raw_columns(self.form)
        cell = _cell_with_reason if self.reasons else _cell_with_sign
        return {
            f"_{part}{at}": column
            for at, field in enumerate(self.form.fields)
            for part, column in cell(field.name, field.logical, field.name in raw, self.placeholder).items()
        }

    def value(self, at: int) -> Column:
        """The value; NULL if it was not sent."""
        return self._if_sent(at, F.col(f"_c{at}.value" if self.reasons else f"_c{at}"))

    def is_unsent(self, at: int) -> Column:
        """Whether the value was not sent; only with a placeholder."""
        return F.col(f"_c{at}.unsent" if self.reasons else f"_u{at}")

    def problem(self, at: int) -> Column:
        """Why the value does not fit its type, NULL if it does; only with ``reasons``."""
        return self._if_sent(at, F.col(f"_c{at}.problem"))

    def doubt(self, at: int) -> Column:
        """Whether the value may not fit its type, NULL counting as false; only without ``reasons``."""
        logical = self.form.fields[at].logical
        doubt = problem_precheck.may_have_problem(logical, F.col(f"_c{at}"), F.col(f"_s{at}"))
        return self._if_sent(at, doubt | F.col(f"_q{at}") if quoting.is_required(logical) else doubt)

    def _if_sent(self, at: int, found: Column) -> Column:
        return found if self.placeholder is None else F.when(~self.is_unsent(at), found)


def raw_columns(form: Form) -> frozenset[str]:
    """Columns of the row whose raw text is needed: those stored as raw text, and guessed doubles."""
    return frozenset(each.name for each in form.fields if each.name in form.raw or each.logical == GUESSED_DOUBLE)


@lru_cache(maxsize=1024)
def decode_key_column(source: str, name: str, logical: LogicalType) -> Column:
    """One column of a key in ``source``; NULL if it does not fit its type, which makes the key unreadable."""
    return _decoded(source, name, logical, is_raw=False).value


@lru_cache(maxsize=4096)
def _cell_with_reason(
    name: str, logical: LogicalType, is_raw: bool, placeholder: Placeholder | None
) -> dict[str, Column]:
    """``c`` STRUCT<value, problem, unsent>; cached, since a Column only names its inputs."""
    decoded = _decoded(ROW, name, logical, is_raw=is_raw)
    members = {"value": decoded.value, "problem": decoded.problem}
    if placeholder is not None:
        members["unsent"] = _is_unsent(name, logical, placeholder, is_raw=is_raw)
    return {"c": expressions.struct(members)}


@lru_cache(maxsize=4096)
def _cell_with_sign(
    name: str, logical: LogicalType, is_raw: bool, placeholder: Placeholder | None
) -> dict[str, Column]:
    """``c`` the value, ``s`` its marker if it has one, ``u`` BOOLEAN whether it was not sent, ``q`` BOOLEAN whether a
    value that must be quoted may lack its quotes; the pass with reasons reads it again.
    """
    wire, read = _read(ROW, name, logical, is_raw=is_raw)
    decoded = types.decode(logical, wire, field_text.text_of(logical, wire, read))
    cell = {"c": decoded.value}
    if quoting.is_required(logical):  # a column of its own: Spark would compute it again in every condition
        cell["q"] = quoting.may_be_unquoted(logical, wire)
    sign = problem_precheck.marker(logical, field_text.was_sent(logical, wire, read), decoded.problem)
    if sign is not None:
        cell["s"] = sign
    if placeholder is not None:
        cell["u"] = _is_unsent(name, logical, placeholder, is_raw=is_raw)
    return cell


def _decoded(source: str, name: str, logical: LogicalType, *, is_raw: bool) -> Decoded:
    wire, read = _read(source, name, logical, is_raw=is_raw)
    asked = quoting.probe_types(logical) if quoting.is_required(logical) else {}
    bare = {reading: F.col(f"{source}_{reading}").getField(name) for reading in asked}
    return types.decode(logical, wire, field_text.text_of(logical, wire, read), bare=bare)


def _is_unsent(name: str, logical: LogicalType, placeholder: Placeholder, *, is_raw: bool) -> Column:
    return unavailable.is_unavailable(
        field_text.text_of(logical, *_read(ROW, name, logical, is_raw=is_raw)), placeholder
    )


def _read(source: str, name: str, logical: LogicalType, *, is_raw: bool) -> tuple[Column, Column]:
    """A field as parsed with its wire type, and as text if that was read. A raw field is text (types.md Y15)."""
    if not is_raw:
        return F.col(source).getField(name), F.col(f"{source}_text").getField(name)
    raw = F.col(RAW)[F.lit(name)]
    return (raw if field_text.is_read_as_text(logical) else F.col(source).getField(name)), raw
