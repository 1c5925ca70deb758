"""YAML as plain values that keep their location, so that every problem can be reported with file, line and key.

A :class:`Document` is the values and, for each path into them (a tuple of keys), its :class:`Origin`. ``${VAR}`` and
``${VAR:-default}`` are substituted *after* documents were merged: a variable that only an overridden value uses need
not be set. ``$${`` is a literal ``${``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import yaml

from replicator.config import substitution
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

KeyPath = tuple[str | int, ...]

_LOCK = ".#"
"""The prefix of the lock that Emacs creates beside a file that is being edited: a dangling symbolic link."""

_REFERRING, _SUBSTITUTING = "connector", "spark"
"""The blocks in which ``${}`` may also be resolved by Kafka Connect, and by Spark."""
_VARIABLE_FORMS = (
    "write ${NAME}, ${NAME:-default}, or $${ for a literal ${; references such as ${env:NAME} are valid below "
    "`connector` only"
)

_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset({f"{_TAG}map", f"{_TAG}seq"})
_QUOTE = "put a text in quotes"
_ALIAS = "found undefined alias"
"""How the parser's message begins that repeats a value, which may be a password."""


@dataclass(frozen=True)
class Origin:
    """Where a value came from: a line of a file, and the environment variables that were substituted in it, if any.

    ``missing``: a variable was not set, so that the value is meaningless and not reported a second time.
    """

    file: str
    line: int = 0
    variables: tuple[str, ...] = ()
    missing: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place} ({', '.join('$' + v for v in self.variables)})" if self.variables else place


@dataclass
class Problems:
    """Collects configuration problems, so that all of them are reported at once."""

    found: list[str] = field(default_factory=list)

    def add(self, what: str, where: object = None) -> None:
        """Add a problem, unless the same one was added before."""
        text = f"{where}: {what}" if where else what
        if text not in self.found:
            self.found.append(text)

    def raise_if_any(self) -> None:
        """Raise one ConfigError that lists every problem added so far; return if there is none."""
        if len(self.found) == 1:
            raise ConfigError(self.found[0])
        if self.found:
            listed = "".join(f"\n  {problem}" for problem in self.found)
            raise ConfigError(f"{len(self.found)} problems in the configuration:{listed}")


@dataclass(frozen=True)
class Document:
    """Plain values (dict, list, scalar) with the origin of every path into them."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: Mapping[KeyPath, Origin] = field(default_factory=dict)

    def origin(self, path: KeyPath) -> Origin | None:
        """Return the origin of the value at *path*, or of the nearest value that contains it."""
        return next((self.origins[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.origins), None)

    def over(self, below: Document) -> Document:
        """Merge this document over another: mappings are merged key by key, all other values replace."""
        origins = dict(below.origins)
        values = _merge(below.values, self.values, (), origins, self.origins)
        return Document(values, origins)

    def filled(self, environment: Mapping[str, str], problems: Problems) -> Document:
        """Substitute every ``${VAR}``; one that is not set and has no default becomes a problem."""
        origins = dict(self.origins)
        values = _substitute(self.values, (), origins, environment, problems)
        return Document(values, origins)


def read(path: Path, problems: Problems) -> Document:
    """Read a YAML file that holds a mapping; an empty file is an empty mapping.

    A file that cannot be read or parsed, or that repeats a key, becomes a problem; one that cannot be read or parsed is
    returned as empty.
    """
    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        problems.add(f"the file cannot be read: {_reason(error)}", path)
        return Document()
    walk = _NodeReader(loader, str(path), problems)
    try:
        node = loader.get_single_node()
        values = {} if node is None else walk.value(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problems.add(f"invalid YAML: {_reason(error)}", f"{path}:{mark.line + 1}" if mark else path)
        return Document()
    finally:
        loader.dispose()
    if not isinstance(values, dict):
        problems.add("the file must hold a mapping of keys to values", path)
        return Document()
    return Document(values, walk.origins)


def read_required(path: Path, environment: Mapping[str, str], problems: Problems) -> Document:
    """Read a file that must not be empty, and substitute its variables. An empty one becomes a problem, since the
    source or model of that name would silently be missing.
    """
    before = len(problems.found)
    document = read(path, problems).filled(environment, problems)
    if not document.values and len(problems.found) == before:
        problems.add("the file is empty: fill it, or remove it", path)
    return document


def yaml_files(folder: Path, problems: Problems) -> list[Path]:
    """Return the YAML files of a folder, by name; none where the folder does not exist. A file that would be ignored
    because it ends with ``.yml`` or ``.YAML`` becomes a problem, and so does a folder that cannot be listed.
    """
    try:
        found = sorted(folder / name for name in os.listdir(folder)) if os.path.lexists(folder) else []
    except OSError as error:
        problems.add(f"the folder cannot be read: {_reason(error)}", folder)
        return []
    found = [path for path in found if path.suffix.lower() in (".yaml", ".yml") and not path.name.startswith(_LOCK)]
    for path in (path for path in found if path.suffix != ".yaml"):
        problems.add(f"this file is not read: rename it to {path.stem}.yaml", path)
    return [path for path in found if path.suffix == ".yaml"]


def sql_files(folder: Path) -> list[Path]:
    """Return the SQL files of a folder, by name; none where the folder does not exist."""
    return sorted(path for path in folder.glob("*.sql") if not path.name.startswith(_LOCK))


def leaves(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the path and value of everything that is not a non-empty mapping, in order."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


@dataclass
class _NodeReader:
    """Converts the nodes of a parsed file into values in one pass, and records the origin of each."""

    loader: yaml.SafeLoader
    file: str
    problems: Problems
    origins: dict[KeyPath, Origin] = field(default_factory=dict)

    def value(self, node: yaml.Node, path: KeyPath = ()) -> Any:
        self.origins.setdefault(path, Origin(self.file, node.start_mark.line + 1))
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _PLAIN_TAGS:
            raise yaml.constructor.ConstructorError(None, None, f"unknown tag {node.tag}", node.start_mark)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(element, (*path, index)) for index, element in enumerate(node.value)]
        try:
            return self.loader.construct_object(node)
        except (yaml.constructor.ConstructorError, ValueError, KeyError, AttributeError) as error:
            kind = node.tag.removeprefix(_TAG)
            wrong = "the tag after ! is unknown" if kind == node.tag else f"this is no valid {kind}"
            raise yaml.constructor.ConstructorError(None, None, f"{wrong}: {_QUOTE}", node.start_mark) from error

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        self._refuse_twice(node)
        self.loader.flatten_mapping(node)
        # an explicit key overrides a merged one; the node may be visited again through an alias
        node.value = list({str(pair[0].value): pair for pair in node.value}.values())
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            # keys are strings, never numbers or booleans: a table may be called `on` or `2024`
            key = str(key_node.value)
            place = (*path, key)
            self.origins[place] = Origin(self.file, key_node.start_mark.line + 1)
            result[key] = self.value(value_node, place)
        return result

    def _refuse_twice(self, node: yaml.MappingNode) -> None:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen:
                self.problems.add(f"the key {key!r} is declared twice", f"{self.file}:{key_node.start_mark.line + 1}")
            seen.add(key)


def _merge(
    below: dict[str, Any],
    above: dict[str, Any],
    path: KeyPath,
    origins: dict[KeyPath, Origin],
    above_origins: Mapping[KeyPath, Origin],
) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        here = (*path, key)
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = _merge(result[key], value, here, origins, above_origins)
        else:
            for stale in [p for p in origins if p[: len(here)] == here]:
                del origins[stale]
            origins.update({p: o for p, o in above_origins.items() if p[: len(here)] == here})
            result[key] = value
    return result


def _substitute(
    value: Any, path: KeyPath, origins: dict[KeyPath, Origin], environment: Mapping[str, str], problems: Problems
) -> Any:
    if isinstance(value, dict):
        return {k: _substitute(v, (*path, k), origins, environment, problems) for k, v in value.items()}
    if isinstance(value, list):
        return [_substitute(v, (*path, i), origins, environment, problems) for i, v in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    found, key = substitution.substitute(value, environment), ".".join(map(str, path))
    for name in found.missing:
        problems.add(f"{key} needs the environment variable {name}, which is not set", origins.get(path))
    for begun in found.open:
        problems.add(f"{key}: the braces of {begun} are unbalanced, or nested more than four deep", origins.get(path))
    unknown = [] if path[0] == _REFERRING or _SUBSTITUTING in path else found.unknown
    for begun in unknown:
        problems.add(f"{key}: {begun} begins no variable: {_VARIABLE_FORMS}", origins.get(path))
    if path in origins:
        has_none = bool(found.missing or found.open or unknown)
        origins[path] = replace(origins[path], variables=tuple(found.used), missing=has_none)
    return found.text


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    reason: str = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"{_ALIAS} after *: {_QUOTE}" if reason.startswith(_ALIAS) else reason
