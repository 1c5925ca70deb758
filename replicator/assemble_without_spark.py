"""Settings -> the readers of the lake without Spark. Raises ConfigError for a store that only Spark reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator import names, targets
from replicator.catalog.control_reader import StoredControlReader
from replicator.lake import Lake
from replicator.operate.progress.arrow_survey import ArrowSurvey
from replicator.operate.runs import Runs
from replicator.spec import SourceSpec

if TYPE_CHECKING:
    from replicator.catalog.store import Store
    from replicator.settings import Settings


def arrow_survey(settings: Settings, store: Store) -> ArrowSurvey:
    """What ``status`` reads if it needs no JVM."""
    return ArrowSurvey(
        Lake(settings.lake.root),
        store,
        settings.formats,
        {source.name: source for source in settings.sources},
        settings.models,
        {name: targets.sink(name, target, brief=True) for name, target in settings.targets.items()},
    )


def sources(settings: Settings, of: ArrowSurvey) -> list[SourceSpec]:
    """The configured sources, and the others found in the lake, by name."""
    configured = {source.name: source for source in settings.sources}
    present = map(names.decode, of.tables(of.lake.bronze_root()))
    every = {name: SourceSpec(name, "") for name in present} | configured
    return [every[name] for name in sorted(every)]


def control_reader(store: Store) -> StoredControlReader:
    """The reader of the lake's control rows."""
    return StoredControlReader(store, store.files())


def runs(settings: Settings, store: Store) -> Runs:
    """The recorded runs of the lake."""
    return Runs(control_reader(store), Lake(settings.lake.root))
