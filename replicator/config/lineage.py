"""``lineage`` of a gold model's file: for each input, the model's columns that hold the key of the input row.

Columns that start with ``_`` stay in gold and need not be declared; whether the SELECT returns them is checked by
Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator.config.yamlfile import KeyPath
from replicator.spec import FULL, INCREMENTAL, Model
from replicator.spelling import suggest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from replicator.spec import SourceSpec


def resolve_refresh(refresh: str | None, inputs: Mapping[str, str], lineage: Mapping[str, Sequence[str]]) -> str:
    """Return how a model is refreshed: as its file says, else incrementally where the lineage names every input."""
    return refresh or (INCREMENTAL if all(name in lineage for name in inputs) else FULL)


def find_lineage_errors(
    model: Model, models: Mapping[str, Model], sources: Sequence[SourceSpec]
) -> Iterator[tuple[KeyPath, str]]:
    """Yield the errors in a model's lineage: the key in the model's file, and the message."""
    declared = {column.name: column for column in model.columns}
    for name, columns in model.lineage.items():
        place: KeyPath = ("lineage", name)
        if name not in model.inputs:
            yield place, f"lineage.{name}: no such input{suggest(name, model.inputs)}"
            continue
        for column in columns:
            if column not in declared and not column.startswith("_"):
                yield place, f"lineage.{name}: {column!r} is not a column{suggest(column, declared)}"
        key = _key(model.inputs[name], models, sources)
        if key and len(key) != len(columns):
            yield place, f"lineage.{name}: the key is {', '.join(key)}, which needs {len(key)} columns"
    missing = [name for name in model.inputs if name not in model.lineage]
    if model.refresh == INCREMENTAL and missing:
        yield (
            ("refresh",),
            f"refresh: incremental needs a lineage for every input; missing for {', '.join(missing)}",
        )


def _key(given: str, models: Mapping[str, Model], sources: Sequence[SourceSpec]) -> tuple[str, ...]:
    """Return the key of an input where it is known without the lake: that of a model, or a declared one."""
    name, slash, table = given.partition("/")
    if not slash:
        return models[given].key if given in models else ()
    source = next((each for each in sources if each.name == name), None)
    return () if source is None else source.declaration(table).keys
