"""JSON Schemas of the YAML files of a configuration, for editors that complete and validate them (decision 0076).

pydantic generates them from the classes that read the files, whose docstrings become descriptions. Further valid
notations are added here: ``${VARIABLES}`` for values, other spellings of keys. Rules about combinations of keys are
only checked by `validate`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from replicator.config.declarekeys import DeclareKeys
from replicator.config.feedfile import FeedKeys
from replicator.config.modelfile import ModelKeys
from replicator.config.settingkeys import Keys
from replicator.config.sourcekeys import SourceKeys

KINDS: Mapping[str, Any] = {
    "settings": Keys,
    "source": SourceKeys,
    "model": ModelKeys,
    "feed": FeedKeys,
    "declare": DeclareKeys | SourceKeys,
}
"""The kinds of files, and the class that reads each."""

_OVER_ANOTHER = "settings"
"""A file of this kind may override another one: a required key may be in either."""

_VARIABLE = r"\$\{"
_AS_TEXT = {
    "integer": r"^[+-]?\d+$",
    "number": r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$",
    "boolean": r"^([Tt]rue|TRUE|[Ff]alse|FALSE|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF)$",
}
"""Quoted values, and words that are plain strings in YAML 1.2, which editors follow."""
_LIMITS = ("enum", "const", "pattern")
_ABOUT = ("default", "description", "format", "writeOnly")


def build(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of one of the KINDS."""
    schema = TypeAdapter(KINDS[kind]).json_schema(schema_generator=_YamlSchemaGenerator)
    extended = _allow_nested_variables(schema, needed=kind != _OVER_ANOTHER)
    return {"$schema": GenerateJsonSchema.schema_dialect, "title": f"replicator: {kind}", **extended}


class _YamlSchemaGenerator(GenerateJsonSchema):
    """Adds what depends on one class alone."""

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        extended, model = super().model_schema(schema), schema["cls"]
        _add_descriptions(extended, model)
        for name, field in model.model_fields.items():
            if isinstance(field.validation_alias, AliasChoices):
                _add_spellings(extended, [each for each in field.validation_alias.choices if isinstance(each, str)])
            if any(isinstance(each, BeforeValidator) for each in field.metadata):
                extended["properties"].get(name, {}).pop("default", None)  # it is not in the notation of the file
        return extended


def _add_descriptions(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Add descriptions to a class and each of its keys, from the docstrings."""
    texts = [" ".join((each.__dict__.get("__doc__") or "").split()).replace("``", "`") for each in model.__mro__[:-2]]
    sentences = [sentence for text in texts for sentence in re.split(r"(?<=\.) (?=[A-Z`])", text)]
    if texts[0]:
        schema["description"] = texts[0]
    for name, own in schema["properties"].items():
        about = [sentence for sentence in sentences if re.search(rf"`{re.escape(name)}\b", sentence)]
        if about:
            own["description"] = " ".join(about)


def _add_spellings(schema: dict[str, Any], names: list[str]) -> None:
    """Add the alternative names of a key; where the key is required, any of them satisfies it."""
    schema["properties"] |= dict.fromkeys(names, schema["properties"][names[0]])
    if names[0] in schema.get("required", ()):
        schema["required"].remove(names[0])
        schema["anyOf"] = [{"required": [name]} for name in names]


def _allow_variables(found: Any, *, needed: bool) -> Any:
    """Extend a schema to accept a variable or a quoted value in place of a value; keys are required only where
    ``needed``.
    """
    inside = _allow_nested_variables(found, needed=needed)
    options = inside.get("anyOf", [inside])
    kinds = [each["type"] for each in options if each.get("type") in _AS_TEXT and not {"enum", "const"} & each.keys()]
    limited = bool(kinds) or any(key in each for each in options for key in _LIMITS)
    if not limited or any(_is_any_text(each) for each in options):
        return inside
    about = {key: inside[key] for key in _ABOUT if key in inside}
    own = {key: value for key, value in inside.items() if key not in about}
    text = {"type": "string", "pattern": "|".join([_VARIABLE, *(_AS_TEXT[kind] for kind in kinds)])}
    return about | {"anyOf": [*own.get("anyOf", [own]), text]}


def _allow_nested_variables(found: dict[str, Any], *, needed: bool) -> dict[str, Any]:
    """Do the same for everything that a schema contains, but not for the schema itself."""
    result = {key: value for key, value in found.items() if _is_kept(key, value, needed=needed)}
    for key in {"properties", "$defs"} & result.keys():
        result[key] = {name: _allow_variables(each, needed=needed) for name, each in result[key].items()}
    for key in {"items", "additionalProperties"} & result.keys():
        result[key] = _allow_variables(result[key], needed=needed) if isinstance(result[key], dict) else result[key]
    if "anyOf" in result:
        result["anyOf"] = [_allow_nested_variables(each, needed=needed) for each in result["anyOf"]]
    return result


def _is_kept(key: str, value: Any, *, needed: bool) -> bool:
    """Return whether a key of the schema is kept: titles repeat their key, and defaults that are no plain values are in
    Python's notation.
    """
    if key == "default":
        return isinstance(value, (str, int, float)) and value != ""
    return key != "title" and (needed or key != "required")


def _is_any_text(found: dict[str, Any]) -> bool:
    return found.get("type") == "string" and not any(key in found for key in _LIMITS)
