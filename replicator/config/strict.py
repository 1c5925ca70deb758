"""Base class of the configuration models, which refuse unknown keys, and validation errors with their location.

:func:`check` validates a :class:`~replicator.config.yamlfile.Document` against a pydantic model. Messages never contain
a value: it may be a secret.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from replicator.config.yamlfile import Document, KeyPath, Problems
from replicator.spelling import suggest

_NO_NUMBER: Final = "a boolean is not a number"


class Strict(BaseModel):
    """A frozen value. Unknown keys are refused, and so are YAML's ``on`` and ``off`` for a number, which Python treats
    as 1 and 0.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True, populate_by_name=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch(cls, value: Any, about: ValidationInfo) -> Any:
        if isinstance(value, bool) and about.field_name is not None:
            field = cls.model_fields[about.field_name]
            kinds = set(_kinds(field.annotation))
            reads_it = any(isinstance(each, BeforeValidator) for each in field.metadata)
            if kinds <= {int, float, types.NoneType} and not reads_it:
                raise PydanticCustomError("float_type" if float in kinds else "int_type", _NO_NUMBER)
        return value


Model = TypeVar("Model", bound=Strict)


def _kinds(annotation: Any) -> Iterator[Any]:
    """Yield the types that an annotation consists of, without their metadata."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        yield from _kinds(typing.get_args(annotation)[0])
    elif origin in (types.UnionType, typing.Union):
        for each in typing.get_args(annotation):
            yield from _kinds(each)
    elif origin is typing.Literal:
        yield from map(type, typing.get_args(annotation))
    else:
        yield annotation


def to_text(value: Any) -> Any:
    """Convert YAML's booleans and numbers into text as Spark writes them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value


def to_tuple(value: Any) -> Any:
    """Wrap a single string in a tuple."""
    return (value,) if isinstance(value, str) else value


def refuse_password(address: str) -> str:
    """Return an address without a login. Raises ValueError for one with a password, which messages would show."""
    login, at, _ = urlsplit(address).netloc.rpartition("@")
    if at and ":" in login:
        raise ValueError("an address is printed and must contain no password: give keys in `s3`, or as AWS's tools do")
    return address


Address = Annotated[str, AfterValidator(refuse_password)]
Text = Annotated[str, BeforeValidator(to_text, json_schema_input_type=str | bool | int | float)]


_MAPPING, _LIST, _NUMBER = "must be a mapping of keys to values", "must be a list", "must be a whole number"
_YAML_MESSAGES = {
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _MAPPING),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), _LIST),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), _NUMBER),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("too_short", "tuple_too_short", "list_too_short"), "must not be empty"),
    "string_type": "must be a string, which YAML reads as another type: put it in quotes",
}
"""pydantic's messages about Python types, in terms of YAML."""
_NO_TEXT: Mapping[type, str] = {
    type(None): "must be a string, but there is no value",
    list: "must be one string, not a list",
    dict: "must be a string, not a mapping of keys to values",
}
"""The same for values that quotes would not make a string."""


def check(model: type[Model], document: Document, problems: Problems) -> Model | None:
    """Validate a document against a model. Every error becomes a problem, and None is returned then."""
    try:
        return model.model_validate(document.values)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_context=False, include_input=False):
            path = _path(detail["loc"], document)
            origin = document.origin(path)
            if origin is not None and origin.missing:
                continue
            problems.add(
                _format_problem(model, path, detail["type"], detail["msg"], _value_at(document.values, path)), origin
            )
        return None


def _path(loc: KeyPath, document: Document) -> KeyPath:
    """Convert pydantic's error location into keys of the file.

    Parts that pydantic adds for unions are removed; the index of an entry that the file has as a mapping becomes its
    key.
    """
    path: KeyPath = ()
    node: Any = document.values
    for index, part in enumerate(loc):
        is_entry = isinstance(part, int) and isinstance(node, dict) and part < len(node)
        key = list(node)[part] if is_entry else part  # type: ignore[index]  # an int
        if (*path, key) in document.origins or index == len(loc) - 1:
            path = (*path, key)
            node = _child(node, key)
    return path


def _child(value: Any, key: str | int) -> Any:
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):
        return None


def _value_at(value: Any, path: KeyPath) -> Any:
    """Return the value of the file at a path, or the scalar that is there instead of a mapping: for its type, the 5 of
    ``columns: {id: 5}``.
    """
    for key in path:
        value = _child(value, key) if isinstance(value, (dict, list)) else value
    return value


def _format_problem(model: type[BaseModel], path: KeyPath, kind: str, message: str, value: Any) -> str:
    key = ".".join(map(str, path))
    if kind == "extra_forbidden":
        known = _fields(model, path[:-1])
        if str(path[-1]) in known:
            return f"{key!r} is another spelling of a key that is given, too: leave one of them out"
        return f"unknown key {key!r}{suggest(str(path[-1]), known)}"
    if kind == "missing":
        return f"the key {key!r} is missing"
    text_error = _NO_TEXT.get(type(value)) if kind == "string_type" else None
    reason = (
        text_error
        or _YAML_MESSAGES.get(kind)
        or re.sub("^(Input|String) should", "must", message.removeprefix("Value error, "))
    )
    return f"{key}: {reason[0].lower()}{reason[1:]}" if key else reason


def _fields(model: Any, path: KeyPath) -> list[str]:
    """Return the valid keys at *path* of a model."""
    if isinstance(model, type) and issubclass(model, BaseModel):
        if not path:
            return [each for name, field in model.model_fields.items() for each in _spellings(name, field)]
        field = model.model_fields.get(str(path[0]))
        return [] if field is None else _fields(field.annotation, path[1:])
    origin, arguments = typing.get_origin(model), typing.get_args(model)
    if origin in (typing.Union, types.UnionType):
        return [name for argument in arguments for name in _fields(argument, path)]
    if not path or not arguments:
        return []
    inside = arguments[-1] if isinstance(origin, type) and issubclass(origin, Mapping) else arguments[0]
    return _fields(inside, path[1:])


def _spellings(name: str, field: FieldInfo) -> list[str]:
    """Return the valid names of a key in a file."""
    if isinstance(field.validation_alias, AliasChoices):
        return [each for each in field.validation_alias.choices if isinstance(each, str)]
    return [field.alias or name]
