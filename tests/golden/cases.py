"""A recorded case: a folder with the SQL that ran, the events that Debezium wrote of it, and the rows in the end.

``script.sql`` and ``case.yaml`` are written by hand, ``events.jsonl`` and ``expected.json`` by
``python -m tests.golden.record``, ``why.md`` says what the case is for.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from replicator.config.declarekeys import DeclareKeys
from replicator.spec import Declaration

FOLDER = Path(__file__).parent
_STARTS = "-- The connector starts here."

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """One folder. Its name is the connector's name and the prefix of its topics; its tables have names of their own."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def told(self) -> dict[str, Any]:
        """``case.yaml``: ``database`` (mariadb, postgres), ``connector`` (settings beside those of every case),
        ``tables`` (declared as in ``conf/sources``), ``rows`` (SELECT per table instead of all its columns).
        """
        return dict(yaml.safe_load((self.folder / "case.yaml").read_text(encoding="utf-8")))

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        """What a user would declare of the tables."""
        return DeclareKeys.model_validate({"tables": self.told.get("tables", {})}).declarations()

    @property
    def statements(self) -> tuple[list[str], list[str]]:
        """The script's statements before the connector starts, and after."""
        text = (self.folder / "script.sql").read_text(encoding="utf-8")
        before, marked, after = text.partition(_STARTS)
        if not marked:
            raise ValueError(f"{self.name}/script.sql has no line {_STARTS!r}")
        return _statements(before), _statements(after)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The records, by topic and offset."""
        text = (self.folder / "events.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n") if line]

    @property
    def expected(self) -> dict[str, Rows]:
        """What each table held in the end."""
        return dict(json.loads((self.folder / "expected.json").read_text(encoding="utf-8")))


def cases() -> list[Case]:
    """Every folder that has a script, by name."""
    return [Case(script.parent) for script in sorted(FOLDER.glob("*/script.sql"))]


def exact(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Rows with values that JSON can hold and that are the same only if type and value are, in one order."""
    told = [{name: _exact(value) for name, value in row.items()} for row in rows]
    return sorted(told, key=lambda row: json.dumps(row, sort_keys=True))


def _exact(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case Decimal():
            return {"decimal": format(value, "f")}
        case dt.datetime():
            kind = "timestamp" if value.tzinfo is None else "instant"
            return {kind: (value if value.tzinfo is None else value.astimezone(dt.timezone.utc)).isoformat()}
        case dt.date():
            return {"date": value.isoformat()}
        case bytes() | bytearray() | memoryview():
            return {"bytes": bytes(value).hex()}
    raise TypeError(f"no exact form is known for {type(value).__name__}")


def _statements(text: str) -> list[str]:
    """Statements end with ``;`` at the end of a line; lines that start with ``--`` are comments."""
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return [statement.strip() for statement in f"{code}\n".split(";\n") if statement.strip()]
