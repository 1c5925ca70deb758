"""The placeholder that Debezium writes for a value it left out, in every spelling (debezium.md E1, E2)."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from dataclasses import dataclass

from replicator.spec.connectors import PLACEHOLDER

_URL_SAFE = str.maketrans("+/", "-_")


@dataclass(frozen=True)
class Placeholder:
    """The configured placeholder (``unavailable.value.placeholder``; ``hex:`` means bytes, E1)."""

    configured: str = PLACEHOLDER

    @property
    def raw(self) -> bytes:
        """The placeholder as bytes."""
        if self.configured.startswith("hex:"):
            return bytes.fromhex(self.configured[4:])
        return self.configured.encode()

    def spellings(self) -> tuple[str, ...]:
        """Every text that means "not sent" (E2): scalars as they are, arrays and maps as compact JSON."""
        text = self.raw.decode("utf-8", "replace")
        values = [[text], *([each] for each in self._encoded), list(self.raw), [self._named], {text: text}]
        return (
            text,
            *self._encoded,
            *(json.dumps(value, separators=(",", ":"), ensure_ascii=False) for value in values),
        )

    def marks(self) -> tuple[str, ...]:
        """Short texts, escaped as in JSON, for a cheap first test: every record with a placeholder contains one of
        them. A list or a map within a text is escaped twice.
        """
        codes = ",".join(str(code) for code in self.raw[:8])
        text = self.raw.decode("utf-8", "replace")
        return tuple(dict.fromkeys((text, escape_json(text), *self._encoded, codes, self._named)))

    @property
    def _encoded(self) -> tuple[str, ...]:
        """The placeholder in base64, and in ``base64-url-safe`` if that is another text."""
        plain = base64.b64encode(self.raw).decode()
        return tuple(dict.fromkeys((plain, plain.translate(_URL_SAFE))))

    @property
    def _named(self) -> str:
        """The UUID derived from the placeholder."""
        return str(uuid.UUID(bytes=hashlib.md5(self.raw, usedforsecurity=False).digest(), version=3))


def escape_json(text: str) -> str:
    """A text as JSON writes it between the quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
