"""``conf/queries``: a saved query is one file, ``<name>.sql``.

The comment lines at its beginning describe it, and name its SQL dialect where that is not the engine's own::

    -- What every line of an order came to.
    -- dialect: athena
    SELECT ...
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from replicator.config.yamlfile import sql_files
from replicator.errors import ConfigError
from replicator.protocols.engine import Dialect
from replicator.spelling import suggest

if TYPE_CHECKING:
    from pathlib import Path

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
_DIALECT = re.compile(r"dialect:\s*(\S*)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class SavedQuery:
    """A query by name: the first line of its comment, its dialect (None: the engine's own), its full text."""

    name: str
    description: str
    dialect: Dialect | None
    text: str


def load_queries(folder: Path) -> tuple[SavedQuery, ...]:
    """Return every query of a folder, by name; none where the folder does not exist. Raises ConfigError with file and
    line.
    """
    return tuple(map(_read_query, sql_files(folder)))


def load_query(folder: Path, name: str) -> SavedQuery:
    """Return the query of that name. Raises ConfigError, with the closest name and the folder."""
    known = [path.stem for path in sql_files(folder)]
    if name not in known:
        raise ConfigError(f"saved query {name!r} does not exist{suggest(name, known)}", where=str(folder))
    return _read_query(folder / f"{name}.sql")


def _read_query(path: Path) -> SavedQuery:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path.name} cannot be read: {error.strerror}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path.name} is not UTF-8", where=str(path)) from error
    description, dialect = "", None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("--"):
            break
        comment = line.strip().lstrip("-").strip()
        named = _DIALECT.fullmatch(comment)
        if named:
            dialect = _dialect(named.group(1), f"{path}:{number}")
        elif not description:
            description = comment
    return SavedQuery(path.stem, description, dialect, text)


def _dialect(name: str, where: str) -> Dialect:
    found = next((known for known in DIALECTS if known == name.lower()), None)
    if found is None:
        raise ConfigError(f"unknown dialect {name!r}{suggest(name, DIALECTS)}", where=where)
    return found
