"""Fencing tokens: numbers of a lake that only increase, drawn while the leases are held."""

from __future__ import annotations

import json
from uuid import uuid4

from replicator.errors import ConfigError
from replicator.leases.register import Register
from replicator.spec import Token


def draw(register: Register) -> Token:
    """Draw the next number. A later holder of a lease draws later, and so has the greater number."""
    while True:
        stored = register.read()
        last = Token(uuid4().hex, 0) if stored is None else _read(stored.text, register.where)
        text = json.dumps({"lake": last.lake, "number": last.number + 1, "drawn": uuid4().hex})
        if register.replace(text, None if stored is None else stored.tag) is not None:
            return Token(last.lake, last.number + 1)


def _read(text: str, where: str) -> Token:
    try:
        record = json.loads(text)
        return Token(str(record["lake"]), int(record["number"]))
    except (ValueError, TypeError, KeyError) as error:
        what = "not a valid lease token"
        raise ConfigError(
            what, where=where, fix="Restore it, or remove it: tokens then start from the beginning."
        ) from error
