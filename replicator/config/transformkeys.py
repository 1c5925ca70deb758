"""``transform`` of a table: what is done with its changes between bronze and silver.

transform:
  cast: {total: "decimal(12,2)"}
  derive: {full_name: "concat(first, ' ', last)"}
  where: status <> 'draft'
  hash: [email]
  except_column_list: [ssn]
  rename: {cust_no: customer_id}
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, model_validator

from replicator import names
from replicator.config import conditions
from replicator.config.strict import Strict
from replicator.errors import ConfigError
from replicator.spec import Transform
from replicator.spelling import suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def _check_function(text: str) -> str:
    if not _FUNCTION.fullmatch(text):
        raise ValueError("a function must be named module:function")
    return text


_Name = Annotated[str, Field(min_length=1)]
_Sql = Annotated[str, Field(min_length=1)]


class TransformKeys(Strict):
    """The steps, in the order in which they are applied: ``cast``, ``function``, ``derive``, ``where``, ``hash`` and
    ``mask``, ``column_list`` or ``except_column_list``, ``rename``. Each names columns as the source spells them; in
    SQL they have the names that silver gives them.
    """

    cast: dict[_Name, _Sql] = Field(default_factory=dict)
    function: Annotated[str, AfterValidator(_check_function)] | None = None
    derive: dict[_Name, _Sql] = Field(default_factory=dict)
    where: _Sql | None = None
    hash: tuple[_Name, ...] = ()
    mask: tuple[_Name, ...] = ()
    column_list: tuple[_Name, ...] = ()
    except_column_list: tuple[_Name, ...] = ()
    rename: dict[_Name, _Name] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _once(self) -> TransformKeys:
        if self.column_list and self.except_column_list:
            raise ValueError("give column_list or except_column_list, not both: each says which columns stay")
        for what in ("hash", "mask", "column_list", "except_column_list"):
            _refuse_duplicates(getattr(self, what), what)
        _refuse_duplicates(list(self.rename.values()), "rename")
        overlap = set(self.hash) & set(self.mask)
        if overlap:
            raise ValueError(f"{min(overlap)!r} is hashed and masked: choose one")
        dropped = set(self.except_column_list) & {*self.hash, *self.mask, *self.rename}
        if dropped:
            raise ValueError(f"{min(dropped)!r} is in except_column_list: it cannot be changed")
        return self

    @model_validator(mode="after")
    def _each_alone(self) -> TransformKeys:
        for what, sql in self._asked():
            conditions.refuse_beyond_row(what, sql)
        return self

    def fit(self, columns: Sequence[str], generated: Sequence[str]) -> None:
        """Raise ValueError for a name that is not among the declared columns, where all of them are declared, and for a
        filter on rows of which some columns are never sent.
        """
        known = [*columns, *self.derive]
        listed = (*self.hash, *self.mask, *self.column_list, *self.except_column_list, *self.rename, *self.cast)
        unknown = next((name for name in listed if columns and self.function is None and name not in known), None)
        if unknown is not None:
            raise ValueError(f"{unknown!r} is not a declared column{suggest(unknown, known)}")
        absent = next((name for name in generated if name not in self.except_column_list), None)
        if self.where is not None and absent is not None and not (self.column_list and absent not in self.column_list):
            raise ValueError(f"where needs complete rows, but {absent!r} is generated: put it into except_column_list")

    def names(self, column: str) -> bool:
        """Return whether a step other than SQL names the column, or makes one of that name."""
        lists = (self.hash, self.mask, self.column_list, self.except_column_list)
        named = (*chain(*lists), *self.cast, *self.derive, *self.rename, *self.rename.values())
        return column.casefold() in map(str.casefold, named)

    def refuse_strange(self, table: str, columns: Sequence[str], shard: Sequence[str]) -> None:
        """Raise ValueError where SQL reads a column that is not among the declared ones, where all of them are
        declared; ``where`` may also read the ``shard``.
        """
        if self.function is not None:
            return
        for what, sql in self._asked():
            extra = [*self.derive, *shard] if what == "where" else []
            conditions.refuse_unknown_column(f"{what} of {table}", sql, [*columns, *extra])

    def _asked(self) -> list[tuple[str, str]]:
        """Return each SQL expression, with its name for messages."""
        derived = [(f"derive of {name!r}", sql) for name, sql in self.derive.items()]
        return derived if self.where is None else [*derived, ("where", self.where)]

    def transform(self) -> Transform:
        """Return the steps as a value of the domain model."""
        return Transform(
            tuple(self.cast.items()),
            self.function or "",
            tuple(self.derive.items()),
            self.where or "",
            self.hash,
            self.mask,
            self.column_list,
            self.except_column_list,
            tuple(self.rename.items()),
        )


def _refuse_duplicates(found: Iterable[str], what: str) -> None:
    listed = list(found)
    if len(set(listed)) < len(listed):
        raise ValueError(f"{what} contains a column twice")
    try:
        names.refuse_case_conflict(listed, what)
    except ConfigError as error:
        raise ValueError(str(error)) from error
