"""Where each layer of each table lives. The only module that joins lake paths (architecture section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from replicator import names
from replicator.spec import Table

HISTORY = "__history"
"""What the name of a history table ends with, behind its table's."""

DEPTHS = {"bronze": 1, "gold": 1, "silver": 2, "history": 2, "twins": 3}
"""How many folders deep each table of a layer lies in the folder of its layer."""

LAYERS = frozenset({*DEPTHS, "dead_letters"})
"""The folders of a lake that have tables in them."""

_SHADOWS = ("silver", "history", "dead_letters")

TWINS = ("delta", "hudi")
"""Formats that a copy of a silver table may be in; its name ends with ``__<format>``."""


def is_local(place: str) -> bool:
    """Whether a path, or a URL of a folder, is on this machine."""
    return "://" not in place or place.startswith("file:")


def local_path(place: str) -> Path:
    """A place that :func:`is_local`."""
    return Path(place.removeprefix("file://").removeprefix("file:"))


@dataclass(frozen=True)
class Lake:
    """A lake root: a local directory or ``s3a://bucket/prefix``, without a trailing slash."""

    root: str

    def bronze_root(self) -> str:
        """The folder with one folder per source."""
        return self._join("bronze")

    def bronze(self, source: str) -> Table:
        """Raw records of one source, append only."""
        return Table(f"bronze/{source}", self._join("bronze", names.encode(source)), partition_by=("topic",))

    def silver(self, source: str, table: str, keys: tuple[str, ...] = ()) -> Table:
        """One row per key of one source table; ``table`` is ``<database or schema>.<table>``."""
        location = self._join("silver", names.encode(source), names.encode_table(table))
        return Table(f"{source}/{table}", location, keys)

    def silver_root(self, source: str | None = None) -> str:
        """The folder with one folder per source, or that of one source with one folder per table."""
        return self._join("silver") if source is None else self._join("silver", names.encode(source))

    def history(self, source: str, table: str, keys: tuple[str, ...] = ()) -> Table:
        """Every state of every key of one source table, from when to when (SCD 2)."""
        location = self._join("history", names.encode(source), names.encode_table(table))
        return Table(f"{source}/{table}{HISTORY}", location, keys)

    def source_table(self, source: str, name: str) -> Table:
        """Silver's table of a source, or the history of one where the name ends so."""
        current = name.removesuffix(HISTORY)
        return self.silver(source, name) if current == name else self.history(source, current)

    def history_root(self, source: str | None = None) -> str:
        """The folder with one folder per source, or that of one source with one folder per table with a history."""
        return self._join("history") if source is None else self._join("history", names.encode(source))

    def twin(self, source: str, table: str, format_: str) -> Table:
        """A copy of one silver table in another format."""
        location = self._join("twins", format_, names.encode(source), names.encode_table(table))
        return Table(f"{source}/{table} ({format_})", location, format=format_)

    def twins_root(self, format_: str, source: str | None = None) -> str:
        """The folder of a format's twins with one folder per source, or that of one source with one per table."""
        return self._join("twins", format_) if source is None else self._join("twins", format_, names.encode(source))

    def companions(self) -> list[tuple[str, str, Callable[[str, str], Table]]]:
        """The kinds of tables that may lie beside silver's: what their names end with, the folder with one folder per
        source, and such a table by source and table name.
        """
        twins = [(f"__{name}", self.twins_root(name), partial(self.twin, format_=name)) for name in TWINS]
        return [(HISTORY, self.history_root(), self.history), *twins]

    def gold(self, model: str, keys: tuple[str, ...] = ()) -> Table:
        """One model."""
        return Table(model, self._join("gold", names.encode(model)), keys)

    def gold_root(self) -> str:
        """The folder with one folder per model."""
        return self._join("gold")

    def dead_letters(self, source: str) -> Table:
        """Records of one source that could not be applied, with a reason each."""
        keys = ("topic", "partition", "offset")
        return Table(f"dead_letters/{source}", self._join("dead_letters", names.encode(source)), keys)

    def dropped_letters(self, source: str) -> Table:
        """Dead letters of one source that somebody gave up, with when and by which filter."""
        keys = ("topic", "partition", "offset", "first_seen")
        return Table(
            f"dropped_letters/{source}", self._join("_replicator", "dropped_letters", names.encode(source)), keys
        )

    def checkpoint(self, source: str) -> str:
        """The streaming checkpoint of Kafka -> bronze; never inside a table (F-C4)."""
        return self._join("_replicator", "checkpoints", names.encode(source))

    def checkpoint_aside(self, source: str, when: str) -> str:
        """Where the checkpoint that a source had until then lies since another one was made."""
        return self._join("_replicator", "checkpoints_aside", names.encode(source), when)

    def gaps(self, source: str) -> str:
        """Control row of a source: offsets that are not in bronze, and were passed over by its operator's word."""
        return self._join("_replicator", "gaps", f"{names.encode(source)}.json")

    def inputs(self, model: str, number: int) -> str:
        """Control row of a model's refresh: which version of every input it read."""
        return self._join("_replicator", "inputs", names.encode(model), f"{number}.json")

    def routes(self, source: str) -> str:
        """Control row of a source: which tables each topic has carried."""
        return self._join("_replicator", "routes", f"{names.encode(source)}.json")

    def epochs(self, source: str) -> str:
        """Control row of a source: from which offsets its order starts anew."""
        return self._join("_replicator", "epochs", f"{names.encode(source)}.json")

    def cut(self, source: str) -> str:
        """Control row of a source: up to where its transactions are whole."""
        return self._join("_replicator", "cuts", f"{names.encode(source)}.json")

    def reached(self, source: str) -> str:
        """Control row of a source: how far each partition had got in the source's order."""
        return self._join("_replicator", "reached", f"{names.encode(source)}.json")

    def pauses(self, source: str) -> str:
        """Control row of a source: which of its tables are paused."""
        return self._join("_replicator", "pauses", f"{names.encode(source)}.json")

    def snapshots(self, source: str) -> str:
        """Control row of a source: whole snapshots that were taken again so that what they do not mention goes."""
        return self._join("_replicator", "snapshots", f"{names.encode(source)}.json")

    def truncates(self, source: str, table: str) -> str:
        """Control row of a table: its truncate watermark."""
        return self._join("_replicator", "truncates", names.encode(source), f"{names.encode_table(table)}.json")

    def horizon(self, source: str, table: str) -> str:
        """Control row of a table: up to where deleted rows were purged."""
        return self._join("_replicator", "horizons", names.encode(source), f"{names.encode_table(table)}.json")

    def schema(self, source: str, table: str) -> str:
        """Control row of a table: how its columns came to be."""
        return self._join("_replicator", "schemas", names.encode(source), f"{names.encode_table(table)}.json")

    def origin(self, source: str, table: str) -> str:
        """Control row of a transformed table: its columns at the source, and what made it."""
        return self._join("_replicator", "origins", names.encode(source), f"{names.encode_table(table)}.json")

    def rebuild(self, source: str, table: str) -> str:
        """Control row of a rebuild of one silver table that is under way: what it reads, and for what."""
        return self._join("_replicator", "rebuild", f"{_shadow_name(source, table)}.json")

    def shadow_roots(self) -> tuple[str, ...]:
        """The folders with one folder per table that a rebuild has made."""
        return tuple(self._join("_replicator", "rebuild", kind) for kind in _SHADOWS)

    def canonical(self, feed: str) -> str:
        """Control row of a feed: up to where its events were sent."""
        return self._join("_replicator", "canonical", f"{names.encode(feed)}.json")

    def event_schema(self, feed: str, version: int) -> str:
        """The JSON Schema of a feed's events of one version."""
        return self._join("_replicator", "canonical", names.encode(feed), f"v{version}.schema.json")

    def verified_root(self, layer: str) -> str:
        """The folder with one control row per comparison of that layer."""
        return self._join("_replicator", "verified", layer)

    def verified(self, layer: str, table: str, against: str) -> str:
        """Control row of a table: when, and as of what, it was last found equal to ``against``."""
        return self._join("_replicator", "verified", layer, f"{names.encode(f'{table} {against}')}.json")

    def runs_root(self) -> str:
        """The folder with one control row per run."""
        return self._join("_replicator", "runs")

    def run(self, run: str) -> str:
        """Control row of a run: what became of the records that it read."""
        return self._join("_replicator", "runs", f"{run}.json")

    def leases_root(self) -> str:
        """The folder with one object per stage, and one for the lake's tokens."""
        return self._join("_replicator", "leases")

    def lease(self, stage: str) -> str:
        """Who writes a stage."""
        return self._join("_replicator", "leases", f"{stage}.json")

    def token(self) -> str:
        """The last token that a writer has drawn."""
        return self._join("_replicator", "leases", "token.json")

    def is_local(self) -> bool:
        """Whether the lake is a local directory."""
        return is_local(self.root)

    def _join(self, *parts: str) -> str:
        return "/".join((self.root.rstrip("/"), *parts))


@dataclass(frozen=True)
class Shadow(Lake):
    """A lake in which one silver table of a source is made once more: the table, its history, the source's dead letters
    and what is known of this table alone lie aside; everything else is where it is in the lake.
    """

    source: str
    table: str

    def silver(self, source: str, table: str, keys: tuple[str, ...] = ()) -> Table:
        """The table once more; another one as it is."""
        found = super().silver(source, table, keys)
        return self._aside(found, "silver") if self._is_of(source, table) else found

    def history(self, source: str, table: str, keys: tuple[str, ...] = ()) -> Table:
        """Its history once more."""
        found = super().history(source, table, keys)
        return self._aside(found, "history") if self._is_of(source, table) else found

    def dead_letters(self, source: str) -> Table:
        """What could not be applied this time."""
        return self._aside(super().dead_letters(source), "dead_letters")

    def truncates(self, source: str, table: str) -> str:
        """Of the table that is made."""
        return self._row("truncates") if self._is_of(source, table) else super().truncates(source, table)

    def horizon(self, source: str, table: str) -> str:
        """Of the table that is made: none of its rows are purged."""
        return self._row("horizon") if self._is_of(source, table) else super().horizon(source, table)

    def schema(self, source: str, table: str) -> str:
        """Of the table that is made."""
        return self._row("schema") if self._is_of(source, table) else super().schema(source, table)

    def origin(self, source: str, table: str) -> str:
        """Of the table that is made."""
        return self._row("origin") if self._is_of(source, table) else super().origin(source, table)

    def _is_of(self, source: str, table: str) -> bool:
        return (source, table) == (self.source, self.table)

    def _aside(self, table: Table, kind: str) -> Table:
        location = self._join("_replicator", "rebuild", kind, _shadow_name(self.source, self.table))
        return replace(table, location=location)

    def _row(self, kind: str) -> str:
        return self._join("_replicator", "rebuild", kind, f"{_shadow_name(self.source, self.table)}.json")


def _shadow_name(source: str, table: str) -> str:
    """Reversible: an encoded name has no dot."""
    return f"{names.encode(source)}.{names.encode_table(table)}"
