"""What is known of a transformed table beside itself: its columns at the source, and which transform made it.

A control row, written before what it tells of. Its columns are of the source, those of the table what the transform
made of them: both only grow. A table that another transform made stops: half of its rows would be as they were.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark.sql.types import DataType, StructField, StructType

from replicator import names
from replicator.errors import TableStopped, TransformChanged
from replicator.spec import Declaration, SourceSpec
from replicator.stages.refinement import Refinement
from replicator.stages.tick.table_share import TableShare
from replicator.transforms.columns.layout import Layout
from replicator.transforms.table_transform import hashing

_KEY_PROBE = "replicator"


@dataclass(frozen=True)
class Origin:
    """A table's ``columns`` at the source, and the ``mark`` of the transform that they have come through."""

    bronze: str
    mark: str
    columns: StructType

    def value(self) -> dict[str, Any]:
        """As a control row."""
        return {"bronze": self.bronze, "mark": self.mark, "columns": self.columns.jsonValue()}


def source_columns(share: TableShare, stored: StructType | None) -> StructType | None:
    """The columns that the table has at the source, as far as it knows them; None before its first batch.
    ``stored`` are its own. Raises TransformChanged.
    """
    if stored is None:
        return None
    found = load(share)
    refuse_changed(share.at, share.name, found)
    if found is None:
        share.at.reached.plain.add(share.name)
        return stored
    return found.columns


def load(share: TableShare) -> Origin | None:
    """What the table's control row says; None where no transform made it."""
    if share.declaration.transform is None and share.name in share.at.reached.plain:
        return None
    return load_by_name(share.at, share.name, share.routes.bronze)


def load_by_name(at: Refinement, name: str, bronze: str) -> Origin | None:
    """The same of a table by its name."""
    row = at.control.get(at.lake.origin(at.source.name, name))
    if row is None or row["bronze"] != bronze:
        return None
    return Origin(row["bronze"], row["mark"], StructType.fromJson(row["columns"]))


def refuse_changed(at: Refinement, name: str, found: Origin | None) -> None:
    """Raise TransformChanged where another transform than the declared one made the table."""
    if (None if found is None else found.mark) != fingerprint(at.source, at.source.declaration(name)):
        whole = at.lake.silver(at.source.name, name).name
        raise TransformChanged(
            "its `transform`, or `apply_as_deletes`, is not the one that made the rows that it has",
            where=whole,
            mend=f"`replicator rebuild {whole}` makes them with the new one; or take the change back.",
        )


def build(share: TableShare, layout: Layout, schema: StructType) -> Origin | None:
    """What the row must say: columns of a layout, in their types. None where there is no transform."""
    told = fingerprint(share.at.source, share.declaration)
    if told is None:
        return None
    columns = [_field(name, schema[name].dataType, layout) for name in layout.types]
    return Origin(share.routes.bronze, told, StructType(columns))


def save(share: TableShare, origin: Origin | None) -> None:
    """Write the row, or remove the one of a table that lay there before."""
    path, control = share.at.lake.origin(share.at.source.name, share.name), share.at.control
    if origin is not None:
        control.put(path, origin.value())
    elif control.get(path) is not None:
        control.remove(path)


def fingerprint(source: SourceSpec, declared: Declaration) -> str | None:
    """What tells one transform from another: what is declared, the function's module, the key. None: there is none."""
    told = declared.transform
    if told is None:
        return None
    module = _text(told.function.partition(":")[0]) if told.function else ""
    key = hashing.digest(source.hash_key, _KEY_PROBE) if told.hashed else ""
    parts = (told, module, key, *([told.as_deletes] if told.as_deletes else []))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def normalize_ast(node: object) -> object:
    """What a program says, in a form of all Pythons that we run on: newer ones give their nodes further fields, empty
    where a program does not use them, 3.12 f-strings parts without text, and ``ast.unparse`` writes what it always
    wrote in other ways.
    """
    if isinstance(node, ast.AST):
        held = ((name, _said(node, value)) for name, value in ast.iter_fields(node))
        return type(node).__name__, [
            (name, normalize_ast(value)) for name, value in held if value is not None and value != []
        ]
    return [normalize_ast(each) for each in node] if isinstance(node, list) else repr(node)


def _said(node: ast.AST, value: Any) -> Any:
    is_text = isinstance(node, ast.JoinedStr)
    return [each for each in value if not (isinstance(each, ast.Constant) and each.value == "")] if is_text else value


def import_function(told: str, table: str) -> Callable[..., Any]:
    """The user's function ``module:function``. Raises TableStopped where Python does not find it."""
    module, _, name = told.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise TableStopped(
            f"the function {told} of its transform is not there: {error}",
            where=table,
            mend="Put the module's folder into PYTHONPATH; with spark-submit give it with --py-files.",
        ) from error
    return found


def _field(name: str, kind: DataType, layout: Layout) -> StructField:
    metadata: dict[str, Any] = {"name": names.decode(name)}
    if name in layout.keys:
        metadata["key"] = layout.keys.index(name)
    return StructField(name, kind, metadata=metadata)


@lru_cache
def _text(module: str) -> str:
    """A module's program, without its comments and its layout: once, as it is when the process loads it."""
    try:
        return repr(normalize_ast(ast.parse(inspect.getsource(importlib.import_module(module)))))
    except (ImportError, OSError, TypeError, SyntaxError):
        return module
