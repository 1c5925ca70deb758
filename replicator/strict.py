"""Configuration values that refuse what they do not know, and say where it stands.

:func:`check` holds a :class:`~replicator.yamlfile.Document` against a pydantic model. Messages never repeat a
value: it may be a secret.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from replicator.yamlfile import Document, KeyPath, Problems, nearest


class Strict(BaseModel):
    """A frozen value; unknown keys are refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True, populate_by_name=True
    )


Model = TypeVar("Model", bound=Strict)


def check(model: type[Model], document: Document, problems: Problems) -> Model | None:
    """The document as the model's value; everything wrong with it becomes a problem, and None is returned."""
    try:
        return model.model_validate(document.values)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_context=False, include_input=False):
            path = _path(detail["loc"], document)
            problems.add(_sentence(model, path, detail["type"], detail["msg"]), document.origin(path))
        return None


def _path(loc: KeyPath, document: Document) -> KeyPath:
    """The location that pydantic tells, without the parts that it adds for unions: they are no keys of the file."""
    path: KeyPath = ()
    for part in loc:
        if (*path, part) in document.origins or part is loc[-1]:
            path = (*path, part)
    return path


def _sentence(model: type[BaseModel], path: KeyPath, kind: str, message: str) -> str:
    key = ".".join(map(str, path))
    if kind == "extra_forbidden":
        return f"unknown key {key!r}{nearest(str(path[-1]), _fields(model, path[:-1]))}"
    if kind == "missing":
        return f"the key {key!r} is missing"
    said = message.removeprefix("Value error, ")
    return f"{key}: {said[0].lower()}{said[1:]}" if key else said


def _fields(model: Any, path: KeyPath) -> list[str]:
    """The keys that may stand at *path* of a model."""
    if isinstance(model, type) and issubclass(model, BaseModel):
        if not path:
            return list(model.model_fields)
        field = model.model_fields.get(str(path[0]))
        return [] if field is None else _fields(field.annotation, path[1:])
    origin, arguments = typing.get_origin(model), typing.get_args(model)
    if origin in (typing.Union, types.UnionType):
        return [name for argument in arguments for name in _fields(argument, path)]
    if not path or not arguments:
        return []
    inside = arguments[-1] if isinstance(origin, type) and issubclass(origin, Mapping) else arguments[0]
    return _fields(inside, path[1:])
