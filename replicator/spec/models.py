"""The outputs of the lake: gold models, their targets, and feeds of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from replicator.spec.rules import Check, Relationship


@dataclass(frozen=True)
class ModelColumn:
    """A column of a gold model: its Postgres type, whether it may be NULL, and its description."""

    name: str
    type: str
    nullable: bool = True
    description: str = ""


OWN_TABLES = "_replicator_"
"""The prefix of the tables that publishing itself needs in a target's schema."""


@dataclass(frozen=True)
class Target:
    """A table of the serving database. ``connection`` names an entry of ``targets`` in the configuration."""

    connection: str
    schema: str
    table: str


FULL, INCREMENTAL = "full", "incremental"
"""How a gold model is refreshed: computed in full and compared, or only its affected rows."""


@dataclass(frozen=True)
class Model:
    """A gold table: one SELECT over silver tables and other models, and the constraints for its rows.

    ``inputs`` maps a placeholder of the SQL to ``<source>/<database or schema>.<table>`` or a model's name;
    ``references`` names the models that must be upserted before and deleted after this one. ``lineage`` maps a
    placeholder to the model's columns that hold the key of the input row, in the order of the input's key; ``refresh``
    is INCREMENTAL only where it names every input (gold.md). ``checks`` are evaluated when it is built.
    ``unknown_member`` is an additional row, by column, for facts whose dimension has not arrived yet; None: there is
    none. ``deletion_vectors``: whether its table has them; None: a new table has none.
    """

    name: str
    sql: str
    inputs: Mapping[str, str]
    key: tuple[str, ...]
    columns: tuple[ModelColumn, ...]
    description: str = ""
    references: tuple[str, ...] = ()
    target: Target | None = None
    lineage: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refresh: str = FULL
    checks: tuple[Check, ...] = ()
    unknown_member: Mapping[str, object] | None = None
    deletion_vectors: bool | None = None

    @property
    def lineage_columns(self) -> tuple[str, ...]:
        """The lineage columns of all inputs."""
        return sum(self.lineage.values(), ())

    def is_served_by(self, target: str) -> bool:
        """Return whether the model is published to this entry of ``targets``."""
        return self.target is not None and self.target.connection == target

    @property
    def reads(self) -> frozenset[str]:
        """What must exist before the model can be built: its inputs, and the models that its relationship checks refer
        to.
        """
        looked_up = {check.rule.to for check in self.checks if isinstance(check.rule, Relationship)}
        return frozenset(self.inputs.values()) | (looked_up - {self.name})


def blocked_models(models: Iterable[Model], refused: Iterable[str]) -> dict[str, str]:
    """Return the models that reference a refused one, directly or through others, each with the name it waits for.

    A fact published before its refused dimension would reference rows that do not exist (decision 0006).
    """
    every, stopped = list(models), set(refused)
    waits: dict[str, str] = {}
    while True:
        waiting = {
            each.name: [r for r in each.references if r in stopped] for each in every if each.name not in stopped
        }
        added = {name: causes[0] for name, causes in waiting.items() if causes}
        if not added:
            return waits
        waits |= added
        stopped |= added.keys()


@dataclass(frozen=True)
class Feed:
    """A topic of events for other teams, made of the changes of one table.

    ``table`` is a model's name or ``<source>/<database or schema>.<table>``; for the latter, ``every_change`` sends
    each record of bronze, not the net change of a batch in silver. ``select`` has the columns of an event with their
    SQL expressions over the row (none: all columns unchanged), ``where`` selects the rows. ``version`` is that of the
    events' schema. With ``tombstones``, each delete is followed by a null value.
    """

    name: str
    topic: str
    table: str
    version: int = 1
    select: tuple[tuple[str, str], ...] = ()
    where: str | None = None
    every_change: bool = False
    tombstones: bool = False
    description: str = ""
    bootstrap_servers: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def source(self) -> str | None:
        """The source of its table; None for a model."""
        name, slash, _ = self.table.partition("/")
        return name if slash else None

    @property
    def source_table(self) -> str:
        """``<database or schema>.<table>`` of a source's table."""
        return self.table.partition("/")[2]
