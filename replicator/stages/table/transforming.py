"""Apply a table's ``transform`` to a batch of its changes, and to its schema plan before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import names
from replicator.errors import ConfigError, SchemaRefused, TableStopped
from replicator.jvm import causes
from replicator.spec import SourceSpec, Table, Transform
from replicator.stages.table import transform_origins
from replicator.stages.table.schema_change import PlannedChange
from replicator.stages.tick.table_share import TableShare
from replicator.transforms.columns import type_versions
from replicator.transforms.columns.layout import Layout, type_family, unreserved_names
from replicator.transforms.evolve import Plan
from replicator.transforms.merge import SYSTEM_COLUMNS
from replicator.transforms.table_transform import binding, execution
from replicator.transforms.table_transform.as_deletes import InvalidCondition
from replicator.transforms.table_transform.binding import BoundTransform, InvalidTransform


@dataclass(frozen=True)
class BatchTransform:
    """The transform of a batch: ``schema`` is what the table needs for the batch; ``transform`` is None if changes are
    not transformed.
    """

    schema: PlannedChange
    transform: BoundTransform | None = None

    @property
    def layout(self) -> Layout:
        """The columns of the changes."""
        return self.schema.plan.layout

    def apply(self, changes: DataFrame) -> DataFrame:
        """Return decoded changes with the source's columns in the columns of the table."""
        if self.transform is None:
            return changes
        made, types = execution.transform_changes(changes, self.transform), self.layout.types
        if types == self.transform.types:
            return made
        own = set(self.transform.columns)
        cells = [
            (F.col(names.quote_spark(c)) if c in own else F.lit(None)).cast(kind).alias(c) for c, kind in types.items()
        ]
        return made.select(*cells, *[c for c in made.columns if c not in own])


def prepare(
    share: TableShare, schema: PlannedChange, stored: StructType | None, decoded: Callable[[], DataFrame]
) -> BatchTransform:
    """Prepare the transform of the share's changes. ``schema`` has the source's columns, like the ``decoded`` changes;
    ``stored`` has the table's. Raises TableStopped if the transform does not fit them, SchemaRefused if the table
    cannot follow.
    """
    transform = share.declaration.transform
    if transform is None:
        return BatchTransform(schema)
    making = bind_transform(share.at.source, share.table, share.name, transform, decoded(), schema.plan.layout.keys)
    plan = replace(schema.plan, layout=Layout(making.types, making.keys_there))
    if stored is not None:
        plan = _extend_plan(share, plan, stored)
    origin = transform_origins.build(share, schema.plan.layout, decoded().schema)
    return BatchTransform(replace(schema, plan=plan, origin=origin), making)


def bind_transform(
    source: SourceSpec, table: Table, name: str, transform: Transform, decoded: DataFrame, keys: tuple[str, ...]
) -> BoundTransform:
    """Bind a transform to decoded changes of a table. Raises TableStopped if it does not fit them."""
    function = transform_origins.import_function(transform.function, table.name) if transform.function else None
    transform = replace(transform, free=unreserved_names(source.declaration(name).formats))
    try:
        return binding.bind(transform, function, source.hash_key, name, decoded, keys)
    except InvalidCondition as error:
        raise TableStopped(
            f"its `apply_as_deletes` is not a condition on single rows: {error}",
            where=table.name,
            fix="Correct it in conf/sources.",
        ) from error
    except (InvalidTransform, ConfigError) as error:
        raise TableStopped(
            f"its `transform` is invalid: {error}", where=table.name, fix="Correct it in conf/sources."
        ) from error
    except Exception as error:  # the user's function may raise anything
        if function is None:
            raise
        raise TableStopped(
            f"function {transform.function} of its transform failed: {causes.summarize(error)}", where=table.name
        ) from error


def _extend_plan(share: TableShare, plan: Plan, stored: StructType) -> Plan:
    """Return the plan for an existing table: it gets new and wider columns, as the source does."""
    own = {each.name: each.dataType.simpleString() for each in stored if each.name not in SYSTEM_COLUMNS}
    wanted = plan.layout.types
    changed_column = next(
        (c for c, kind in wanted.items() if c in own and type_family(own[c]) != type_family(kind)), None
    )
    if plan.evolution.moved or changed_column is not None:
        column = changed_column if changed_column is not None else plan.evolution.moved[0][0]
        raise SchemaRefused(
            f"column {names.decode(column)} was {own.get(column)} and is {wanted.get(column)} after the transform",
            where=share.table.name,
            fix=f"Cast it in `transform`, or rebuild the table: `replicator rebuild {share.table.name}`.",
        )
    evolution = type_versions.evolution_to_layout(own, plan.layout)
    types = own | dict(evolution.widened) | dict(evolution.added)
    return replace(plan, layout=Layout(types, plan.layout.keys), evolution=evolution)
