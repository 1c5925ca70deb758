"""Settings -> a look at the lake without Spark (``operate/direct.py``); nothing is reached yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator import targets
from replicator.lake import Lake
from replicator.operate.direct import DirectSurvey

if TYPE_CHECKING:
    from replicator.catalog.store import Store
    from replicator.settings import Settings


def direct(settings: Settings, store: Store) -> DirectSurvey:
    """What ``status`` looks at where no JVM is needed for it."""
    return DirectSurvey(
        Lake(settings.lake.root),
        store,
        settings.formats,
        {source.name: source for source in settings.sources},
        settings.models,
        {name: targets.sink(name, target) for name, target in settings.targets.items()},
    )
