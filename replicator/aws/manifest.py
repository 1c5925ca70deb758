"""The content of a package made by ``replicator aws package``, as described in its ``manifest.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass

from replicator.aws import archive
from replicator.errors import ConfigError

MANIFEST = "manifest.json"
DEPENDENCIES, CONF = "dependencies.tar.gz", "conf.tar.gz"
BOOTSTRAP = "bootstrap.sh"


@dataclass(frozen=True)
class Manifest:
    """The files of one package by name, with their SHA-256. ``env`` is the environment whose
    configuration it contains.
    """

    env: str
    files: dict[str, str]

    @property
    def id(self) -> str:
        """A short id of these files: the same files have the same id."""
        return archive.content_id(self.files)

    @property
    def wheel(self) -> str:
        """The package's own wheel. Raises ConfigError if there is none."""
        found = [name for name in self.files if name.endswith(".whl")]
        if len(found) != 1:
            raise ConfigError(f"a package must have one wheel, and this one has {len(found)}", where=MANIFEST)
        return found[0]

    @property
    def jars(self) -> list[str]:
        """The JARs that EMR does not provide."""
        return sorted(name for name in self.files if name.endswith(".jar"))

    def text(self) -> str:
        """The text of ``manifest.json``."""
        return json.dumps({"id": self.id, "env": self.env, "files": self.files}, indent=2, sort_keys=True) + "\n"

    @classmethod
    def told(cls, text: str, where: str) -> Manifest:
        """Parse a manifest. Raises ConfigError for an invalid one, or if its id does not match its files."""
        try:
            found = json.loads(text)
            packed = cls(str(found["env"]), {str(name): str(sha256) for name, sha256 in found["files"].items()})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError("not a package manifest", where=where, fix=_FIX) from error
        if packed.id != found.get("id"):
            raise ConfigError("the manifest was edited by hand: its id does not match", where=where, fix=_FIX)
        return packed


_FIX = "Rebuild it with `replicator aws package`."
