"""What the lake gives on: models of gold, their targets, and feeds of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from replicator.spec.rules import Check, Relationship


@dataclass(frozen=True)
class ModelColumn:
    """A column of a gold model: its Postgres type, whether it may be NULL, and what it means."""

    name: str
    type: str
    nullable: bool = True
    description: str = ""


OWN_TABLES = "_replicator_"
"""How the tables begin that publishing keeps for itself in a target's schema."""


@dataclass(frozen=True)
class Target:
    """A table of the serving database. ``connection`` names an entry of ``targets`` in the configuration."""

    connection: str
    schema: str
    table: str


FULL, INCREMENTAL = "full", "incremental"
"""How a gold model is brought up to date: computed in full and compared, or its affected rows only."""


@dataclass(frozen=True)
class Model:
    """A gold table: one SELECT over silver tables and other models, and what must hold for its rows.

    ``inputs`` maps a placeholder of the SQL to ``<source>/<database or schema>.<table>`` or a model's name;
    ``references`` names the models that must be upserted before and deleted after this one. ``lineage`` maps a
    placeholder to the model's columns that hold the key of the input row used, in the order of the input's key;
    ``refresh`` is INCREMENTAL only where it names every input (gold.md). ``checks`` are held when it is built.
    ``unknown_member`` is one more row, by column, for facts whose dimension is not there yet; None: there is none.
    ``deletion_vectors``: whether its table has them; None: a new one has none.
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
        """The columns of its lineage, of all inputs."""
        return sum(self.lineage.values(), ())

    def is_served_by(self, target: str) -> bool:
        """Whether its rows go to this entry of ``targets``."""
        return self.target is not None and self.target.connection == target

    @property
    def reads(self) -> frozenset[str]:
        """What must be there before it can be built: its inputs, and the models that its relationships lead to."""
        looked_up = {check.rule.to for check in self.checks if isinstance(check.rule, Relationship)}
        return frozenset(self.inputs.values()) | (looked_up - {self.name})


def blocked_models(models: Iterable[Model], refused: Iterable[str]) -> dict[str, str]:
    """Models that reference a refused one, directly or through others, each with the name it waits for.

    A fact that goes ahead of its refused dimension would point at rows that are not there (decision 0006).
    """
    every, stopped = list(models), set(refused)
    waits: dict[str, str] = {}
    while True:
        behind = {each.name: [r for r in each.references if r in stopped] for each in every if each.name not in stopped}
        more = {name: causes[0] for name, causes in behind.items() if causes}
        if not more:
            return waits
        waits |= more
        stopped |= more.keys()


@dataclass(frozen=True)
class Feed:
    """A topic of events for others, made of the changes of one table.

    ``table`` is a model's name or ``<source>/<database or schema>.<table>``; of the latter ``every_change`` takes each
    record that bronze has, not what silver made of a batch of them. ``select`` has the columns of an event with their
    SQL expressions over the row's (none: all as they are), ``where`` the rows that others see. ``version`` is of the
    events' schema. With ``tombstones`` a null follows each delete.
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
        """The source of its table; None of a model."""
        name, slash, _ = self.table.partition("/")
        return name if slash else None

    @property
    def source_table(self) -> str:
        """``<database or schema>.<table>`` of a table of a source."""
        return self.table.partition("/")[2]
