"""Settings -> where the lake's tables and control rows are stored, fenced by the lease of who writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from replicator import registry
from replicator.formats.fencing import FencedControl, FencedFormat
from replicator.formats.mixed import MixedFormat
from replicator.lake import Lake
from replicator.protocols import UNFENCED
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replicator.protocols import Control, Fence, TableFormat
    from replicator.settings import Settings
    from replicator.spec import SourceSpec


@dataclass(frozen=True)
class LakeStores:
    """The stores of a lake, as every stage is given them."""

    settings: Settings
    lake: Lake
    bronze: TableFormat
    silver: TableFormat
    control: Control

    @classmethod
    def of(cls, spark: SparkSession, settings: Settings, fence: Fence) -> LakeStores:
        """Return the stores; they are written only while ``fence`` allows it."""
        silver = table_format(settings, fence)
        return cls(settings, Lake(settings.lake.root), delta(fence), silver, control(spark, fence))

    def refinement(self, source: SourceSpec) -> Refinement:
        """Return silver of a source."""
        share, at_once = self.settings.dead_letter.max_share, self.settings.silver.tables_at_once
        return Refinement(source, self.bronze, self.silver, self.control, self.lake, share, at_once)

    def warehouse(self) -> Warehouse:
        """Return where models and their inputs are stored."""
        return Warehouse(self.silver, self.bronze, self.control, self.lake)


def table_format(settings: Settings, fence: Fence = UNFENCED) -> TableFormat:
    """Tables in the configured formats."""
    formats: dict[str, TableFormat] = {name: _fenced(name, fence) for name in settings.formats}
    return formats["delta"] if len(formats) == 1 else MixedFormat(formats)


def delta(fence: Fence = UNFENCED) -> TableFormat:
    """Tables of Delta, the format of bronze and gold."""
    return _fenced("delta", fence)


def control(spark: SparkSession, fence: Fence = UNFENCED) -> Control:
    """The control rows below the lake's root."""
    made: Control = registry.load("control", "json")(spark)
    return FencedControl(made, fence)


def _fenced(name: str, fence: Fence) -> TableFormat:
    made: TableFormat = registry.load("format", name)(fence=fence)
    return FencedFormat(made, fence)
