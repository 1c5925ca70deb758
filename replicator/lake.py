"""The location of every table and control row. The only module that joins lake paths (architecture section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from replicator import names
from replicator.spec import Table

HISTORY = "__history"
"""The suffix of a history table's name after that of its table."""

DEPTHS = {"bronze": 1, "gold": 1, "silver": 2, "history": 2, "twins": 3}
"""How many folder levels below its layer's folder the tables of a layer are."""

LAYERS = frozenset({*DEPTHS, "dead_letters"})
"""The folders of a lake that contain tables."""

_SHADOWS = ("silver", "history", "dead_letters")

TWINS = ("delta", "hudi")
"""Formats in which a copy of a silver table may be kept; the copy's name ends with ``__<format>``."""


def is_local(place: str) -> bool:
    """Whether a path, or a URL of a folder, is on this machine."""
    return "://" not in place or place.startswith("file:")


def local_path(place: str) -> Path:
    """The path of a place for which :func:`is_local` holds."""
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
        """The silver table ``name`` of a source, or the history table if the name has its suffix."""
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
        """The kinds of tables that may exist beside silver's: the suffix of their names, the folder with one folder per
        source, and a function from source and table name to such a table.
        """
        twins = [(f"__{name}", self.twins_root(name), partial(self.twin, format_=name)) for name in TWINS]
        return [(HISTORY, self.history_root(), self.history), *twins]

    def gold(self, model: str, keys: tuple[str, ...] = ()) -> Table:
        """The table of one model."""
        return Table(model, self._join("gold", names.encode(model)), keys)

    def gold_root(self) -> str:
        """The folder with one folder per model."""
        return self._join("gold")

    def dead_letters(self, source: str) -> Table:
        """Records of one source that could not be applied, each with a reason."""
        keys = ("topic", "partition", "offset")
        return Table(f"dead_letters/{source}", self._join("dead_letters", names.encode(source)), keys)

    def dropped_letters(self, source: str) -> Table:
        """Dead letters of one source that were dropped by an operator, with the time and the filter."""
        keys = ("topic", "partition", "offset", "first_seen")
        return Table(
            f"dropped_letters/{source}", self._join("_replicator", "dropped_letters", names.encode(source)), keys
        )

    def checkpoint(self, source: str) -> str:
        """The streaming checkpoint of Kafka -> bronze; never inside a table (F-C4)."""
        return self._join("_replicator", "checkpoints", names.encode(source))

    def checkpoint_aside(self, source: str, when: str) -> str:
        """The place of a source's former checkpoint, set aside at ``when``."""
        return self._join("_replicator", "checkpoints_aside", names.encode(source), when)

    def gaps(self, source: str) -> str:
        """Control row of a source: offsets that are not in bronze and were skipped on an operator's command."""
        return self._join("_replicator", "gaps", f"{names.encode(source)}.json")

    def inputs(self, model: str, number: int) -> str:
        """Control row of a model's refresh: the version of every input that it read."""
        return self._join("_replicator", "inputs", names.encode(model), f"{number}.json")

    def routes(self, source: str) -> str:
        """Control row of a source: which tables each topic has carried."""
        return self._join("_replicator", "routes", f"{names.encode(source)}.json")

    def epochs(self, source: str) -> str:
        """Control row of a source: the offsets from which a new epoch of its order begins."""
        return self._join("_replicator", "epochs", f"{names.encode(source)}.json")

    def cut(self, source: str) -> str:
        """Control row of a source: up to which position its transactions are complete."""
        return self._join("_replicator", "cuts", f"{names.encode(source)}.json")

    def reached(self, source: str) -> str:
        """Control row of a source: the position in the source's order that each partition has reached."""
        return self._join("_replicator", "reached", f"{names.encode(source)}.json")

    def pauses(self, source: str) -> str:
        """Control row of a source: which of its tables are paused."""
        return self._join("_replicator", "pauses", f"{names.encode(source)}.json")

    def snapshots(self, source: str) -> str:
        """Control row of a source: complete snapshots that were repeated to delete the rows that they do
        not contain.
        """
        return self._join("_replicator", "snapshots", f"{names.encode(source)}.json")

    def truncates(self, source: str, table: str) -> str:
        """Control row of a table: its truncate watermark."""
        return self._join("_replicator", "truncates", names.encode(source), f"{names.encode_table(table)}.json")

    def horizon(self, source: str, table: str) -> str:
        """Control row of a table: the position up to which deleted rows were purged."""
        return self._join("_replicator", "horizons", names.encode(source), f"{names.encode_table(table)}.json")

    def schema(self, source: str, table: str) -> str:
        """Control row of a table: the origin of its columns."""
        return self._join("_replicator", "schemas", names.encode(source), f"{names.encode_table(table)}.json")

    def origin(self, source: str, table: str) -> str:
        """Control row of a transformed table: its columns at the source, and the transform that made it."""
        return self._join("_replicator", "origins", names.encode(source), f"{names.encode_table(table)}.json")

    def rebuild(self, source: str, table: str) -> str:
        """Control row of an unfinished rebuild of one silver table: what it reads, and its purpose."""
        return self._join("_replicator", "rebuild", f"{_shadow_name(source, table)}.json")

    def shadow_roots(self) -> tuple[str, ...]:
        """The folders with one folder per table written by a rebuild."""
        return tuple(self._join("_replicator", "rebuild", kind) for kind in _SHADOWS)

    def canonical(self, feed: str) -> str:
        """Control row of a feed: the position up to which its events were sent."""
        return self._join("_replicator", "canonical", f"{names.encode(feed)}.json")

    def event_schema(self, feed: str, version: int) -> str:
        """The JSON Schema of one version of a feed's events."""
        return self._join("_replicator", "canonical", names.encode(feed), f"v{version}.schema.json")

    def verified_root(self, layer: str) -> str:
        """The folder with one control row per comparison of that layer."""
        return self._join("_replicator", "verified", layer)

    def verified(self, layer: str, table: str, against: str) -> str:
        """Control row of a table: when, and as of which version, it was last found equal to ``against``."""
        return self._join("_replicator", "verified", layer, f"{names.encode(f'{table} {against}')}.json")

    def runs_root(self) -> str:
        """The folder with one control row per run."""
        return self._join("_replicator", "runs")

    def run(self, run: str) -> str:
        """Control row of a run: what happened to the records that it read."""
        return self._join("_replicator", "runs", f"{run}.json")

    def leases_root(self) -> str:
        """The folder with one object per stage, and one for the lake's tokens."""
        return self._join("_replicator", "leases")

    def lease(self, stage: str) -> str:
        """The lease of a stage: which driver writes it."""
        return self._join("_replicator", "leases", f"{stage}.json")

    def token(self) -> str:
        """The last fencing token drawn by a writer."""
        return self._join("_replicator", "leases", "token.json")

    def is_local(self) -> bool:
        """Whether the lake is a local directory."""
        return is_local(self.root)

    def _join(self, *parts: str) -> str:
        return "/".join((self.root.rstrip("/"), *parts))


@dataclass(frozen=True)
class Shadow(Lake):
    """A lake in which one silver table of a source is rebuilt: the table, its history, the source's dead letters and
    the control rows of this table alone are in a separate place; everything else is where it is in the lake.
    """

    source: str
    table: str

    def silver(self, source: str, table: str, keys: tuple[str, ...] = ()) -> Table:
        """The rebuilt table; any other table as in the lake."""
        found = super().silver(source, table, keys)
        return self._aside(found, "silver") if self._is_of(source, table) else found

    def history(self, source: str, table: str, keys: tuple[str, ...] = ()) -> Table:
        """The rebuilt history; any other history as in the lake."""
        found = super().history(source, table, keys)
        return self._aside(found, "history") if self._is_of(source, table) else found

    def dead_letters(self, source: str) -> Table:
        """The records that could not be applied during the rebuild."""
        return self._aside(super().dead_letters(source), "dead_letters")

    def truncates(self, source: str, table: str) -> str:
        """That of the rebuilt table; any other as in the lake."""
        return self._row("truncates") if self._is_of(source, table) else super().truncates(source, table)

    def horizon(self, source: str, table: str) -> str:
        """That of the rebuilt table, none of whose rows are purged; any other as in the lake."""
        return self._row("horizon") if self._is_of(source, table) else super().horizon(source, table)

    def schema(self, source: str, table: str) -> str:
        """That of the rebuilt table; any other as in the lake."""
        return self._row("schema") if self._is_of(source, table) else super().schema(source, table)

    def origin(self, source: str, table: str) -> str:
        """That of the rebuilt table; any other as in the lake."""
        return self._row("origin") if self._is_of(source, table) else super().origin(source, table)

    def _is_of(self, source: str, table: str) -> bool:
        return (source, table) == (self.source, self.table)

    def _aside(self, table: Table, kind: str) -> Table:
        location = self._join("_replicator", "rebuild", kind, _shadow_name(self.source, self.table))
        return replace(table, location=location)

    def _row(self, kind: str) -> str:
        return self._join("_replicator", "rebuild", kind, f"{_shadow_name(self.source, self.table)}.json")


def _shadow_name(source: str, table: str) -> str:
    """Reversible, since an encoded name contains no dot."""
    return f"{names.encode(source)}.{names.encode_table(table)}"
