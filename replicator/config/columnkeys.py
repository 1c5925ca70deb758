"""Columns as files list them: their names, and the declarations for columns of a source's table."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from replicator import names
from replicator.config.strict import Strict
from replicator.debezium.type_parser import parse_type
from replicator.errors import ConfigError


def _check_logical_type(text: str) -> str:
    try:
        parse_type(text)
    except ConfigError as error:
        raise ValueError(f"{error.what}. {error.fix or ''}".rstrip(" .")) from error
    return text


def normalize_columns(value: Any) -> Any:
    """Convert columns into a list from any notation, ``{id: int}``, ``{id: {type: int}}`` or ``[{name: id, type:
    int}]``.
    """
    if not isinstance(value, dict):
        return value
    return [{"name": n, **t} if isinstance(t, dict) else {"name": n, "type": t} for n, t in value.items()]


def refuse_duplicates(found: list[str], what: str) -> None:
    """Raise ValueError where a name occurs twice, or again in another case."""
    duplicate = next((name for name in found if found.count(name) > 1), None)
    if duplicate is not None:
        raise ValueError(f"{what} contains {duplicate!r} twice")
    try:
        names.refuse_case_conflict(found, what)
    except ConfigError as error:
        raise ValueError(str(error)) from error


Logical = Annotated[str, AfterValidator(_check_logical_type)]
ColumnName = Annotated[str, Field(min_length=1)]


class NamedColumnKeys(Strict):
    """A declared column below its name; ``type`` is a logical type in its short form (types.md Y13); ``generated``: the
    database computes it, and PostgreSQL's stream never has it (debezium.md E8).
    """

    type: Logical
    unsigned: bool = False
    generated: bool = False


class ColumnKeys(NamedColumnKeys):
    """An element of a list of declared columns."""

    name: ColumnName

    @property
    def supplements_schema(self) -> bool:
        """Whether it declares only what a schema block omits."""
        return self.generated or self.unsigned or parse_type(self.type).unsigned


Columns = Annotated[
    tuple[ColumnKeys, ...],
    BeforeValidator(
        normalize_columns, json_schema_input_type=dict[ColumnName, Logical | NamedColumnKeys] | tuple[ColumnKeys, ...]
    ),
]
