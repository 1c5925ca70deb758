"""What is stored about a transformed table besides the table itself: its columns at the source, and the transform that
made it.

This is a control row, written before the table is. Its columns are those of the source, while the table's are those
that the transform made of them; both can only grow. A table that was made by another transform than the declared one is
stopped, because part of its rows would stay as they were.
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
    """A table's ``columns`` at the source, and the fingerprint (``mark``) of the transform that was applied to them."""

    bronze: str
    mark: str
    columns: StructType

    def value(self) -> dict[str, Any]:
        """Return the control row."""
        return {"bronze": self.bronze, "mark": self.mark, "columns": self.columns.jsonValue()}


def source_columns(share: TableShare, stored: StructType | None) -> StructType | None:
    """Return the known columns of the table at the source; None before its first batch. ``stored`` are its own columns.
    Raises TransformChanged.
    """
    if stored is None:
        return None
    found = load(share)
    refuse_changed(share.at, share.name, found)
    if found is None:
        share.at.state.untransformed.add(share.name)
        return stored
    return found.columns


def load(share: TableShare) -> Origin | None:
    """Load the table's control row; None if no transform made the table."""
    if share.declaration.transform is None and share.name in share.at.state.untransformed:
        return None
    return load_by_name(share.at, share.name, share.routes.bronze)


def load_by_name(at: Refinement, name: str, bronze: str) -> Origin | None:
    """Load the same for a table by its name."""
    row = at.control.get(at.lake.origin(at.source.name, name))
    if row is None or row["bronze"] != bronze:
        return None
    return Origin(row["bronze"], row["mark"], StructType.fromJson(row["columns"]))


def refuse_changed(at: Refinement, name: str, found: Origin | None) -> None:
    """Raise TransformChanged if another transform than the declared one made the table."""
    if (None if found is None else found.mark) != fingerprint(at.source, at.source.declaration(name)):
        table = at.lake.silver(at.source.name, name).name
        raise TransformChanged(
            "its `transform` or `apply_as_deletes` is not the one that produced its rows",
            where=table,
            fix=f"`replicator rebuild {table}` builds them with the new one; or revert the change.",
        )


def build(share: TableShare, layout: Layout, schema: StructType) -> Origin | None:
    """Return the control row for the columns of a layout, with their types; None if there is no transform."""
    mark = fingerprint(share.at.source, share.declaration)
    if mark is None:
        return None
    columns = [_field(name, schema[name].dataType, layout) for name in layout.types]
    return Origin(share.routes.bronze, mark, StructType(columns))


def save(share: TableShare, origin: Origin | None) -> None:
    """Write the row, or remove the row of an earlier table of that name."""
    path, control = share.at.lake.origin(share.at.source.name, share.name), share.at.control
    if origin is not None:
        control.put(path, origin.value())
    elif control.get(path) is not None:
        control.remove(path)


def fingerprint(source: SourceSpec, declared: Declaration) -> str | None:
    """Return the fingerprint of a transform: of its declaration, the function's module, and the hash key. None if there
    is no transform.
    """
    transform = declared.transform
    if transform is None:
        return None
    module = _text(transform.function.partition(":")[0]) if transform.function else ""
    key = hashing.digest(source.hash_key, _KEY_PROBE) if transform.hashed else ""
    parts = (transform, module, key, *([transform.as_deletes] if transform.as_deletes else []))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def normalize_ast(node: object) -> object:
    """Return a program in a form that is the same for all supported Python versions. Newer ones add fields to their
    nodes, which are empty if a program does not use them; 3.12 leaves out empty parts of f-strings; and the output of
    ``ast.unparse`` differs between versions.
    """
    if isinstance(node, ast.AST):
        fields = ((name, _said(node, value)) for name, value in ast.iter_fields(node))
        return type(node).__name__, [
            (name, normalize_ast(value)) for name, value in fields if value is not None and value != []
        ]
    return [normalize_ast(each) for each in node] if isinstance(node, list) else repr(node)


def _said(node: ast.AST, value: Any) -> Any:
    is_text = isinstance(node, ast.JoinedStr)
    return [each for each in value if not (isinstance(each, ast.Constant) and each.value == "")] if is_text else value


def import_function(told: str, table: str) -> Callable[..., Any]:
    """Import the user's function ``module:function``. Raises TableStopped if Python does not find it."""
    module, _, name = told.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise TableStopped(
            f"function {told} of its transform was not found: {error}",
            where=table,
            fix="Add the module's folder to PYTHONPATH; with spark-submit pass it with --py-files.",
        ) from error
    return found


def _field(name: str, kind: DataType, layout: Layout) -> StructField:
    metadata: dict[str, Any] = {"name": names.decode(name)}
    if name in layout.keys:
        metadata["key"] = layout.keys.index(name)
    return StructField(name, kind, metadata=metadata)


@lru_cache
def _text(module: str) -> str:
    """Return a module's program without comments and layout, read once, as it is when the process loads it."""
    try:
        return repr(normalize_ast(ast.parse(inspect.getsource(importlib.import_module(module)))))
    except (ImportError, OSError, TypeError, SyntaxError):
        return module
