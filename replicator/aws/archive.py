"""Reproducible archives and file lists: the same files give the same bytes, at any time and place."""

from __future__ import annotations

import gzip
import hashlib
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path

_BLOCK = 1 << 20
_ID = 12


def pack(folder: Path, to: Path) -> None:
    """Pack all files below *folder* as ``.tar.gz``, by name, without times, owners, and modes except for the executable
    bit.
    """
    with to.open("wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw, compresslevel=6) as zipped:  # noqa: SIM117
        with tarfile.open(mode="w", fileobj=zipped, format=tarfile.PAX_FORMAT) as archive:
            for file in files(folder):
                archive.add(file, file.relative_to(folder).as_posix(), filter=_normalize_entry)


def files(folder: Path) -> list[Path]:
    """All files below a folder, by name, without Python's caches."""
    found = (each for each in folder.rglob("*") if each.is_file() and "__pycache__" not in each.parts)
    return sorted(found, key=lambda file: file.relative_to(folder).as_posix())


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file below *folder*, by its relative path."""
    return {file.relative_to(folder).as_posix(): _sha256(file) for file in files(folder)}


def content_id(sums: Mapping[str, str]) -> str:
    """A short id of exactly these files."""
    text = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(sums.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:_ID]


def is_content_id(name: str) -> bool:
    """Whether the text may be such an id."""
    return re.fullmatch(f"[0-9a-f]{{{_ID}}}", name) is not None


def _normalize_entry(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry


def _sha256(file: Path) -> str:
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            found.update(block)
    return found.hexdigest()
