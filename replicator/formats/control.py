"""Control rows and folders on the lake's own file system, through Hadoop's client: local disk and object stores
alike.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from replicator import controlrow, failpoints
from replicator.errors import NoControlRow
from replicator.jvm import gateway
from replicator.jvm.hadoop import file_system, is_absent, read_error, read_text

_SUFFIX = ".json"
_TEMP_SUFFIX = ".new"
_LOCAL = "file:"
_LOOKS, _MOMENT_SECONDS = 5, 0.1
_CHECKSUM_ERROR = "org.apache.hadoop.fs.ChecksumException"


class JsonControl:
    """``Control`` as JSON files: one small object per path, written whole.

    A new object is written beside its place first, then takes the place of the old one, which is deleted for it. What
    lies beside a place that is empty is the object, if it is a whole one; else its writer died before it was.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def get(self, path: str) -> dict[str, Any] | None:
        """The object, None if the file is missing. Raises NoControlRow for one that is broken."""
        if exists(self._spark, path):
            try:
                return controlrow.read(path, self._whole(path))
            except Py4JJavaError as error:
                if not is_absent(error):
                    raise
                return self.get(path)  # it was about to be replaced
        found = self._read_temp(path)
        # between the two looks it may have been moved to its place
        return self.get(path) if found is None and exists(self._spark, path) else found

    def put(self, path: str, value: Mapping[str, Any]) -> None:
        """Write the file beside its place, then move it there: a crash leaves the old object or the whole new one."""
        files, place, jvm = file_system(self._spark, path)
        beside = jvm.org.apache.hadoop.fs.Path(f"{path}{_TEMP_SUFFIX}")
        if not exists(self._spark, path) and self._read_temp(path) is not None:
            files.rename(beside, place)  # else the only copy would be written over
        stream = files.create(beside, True)
        try:
            failpoints.hit("control.row_begun")
            stream.write(bytearray(json.dumps(value, sort_keys=True).encode()))
        finally:
            stream.close()
        files.delete(place, False)
        failpoints.hit("control.row_beside")
        files.rename(beside, place)

    def under(self, folder: str) -> tuple[str, ...]:
        """From the names of the files."""
        files, place, _ = file_system(self._spark, folder)
        if not exists(self._spark, folder):
            return ()
        found = {str(status.getPath().getName()) for status in files.listStatus(place)}
        whole = {name for name in found if name.endswith(_SUFFIX)}
        beside = {
            name.removesuffix(_TEMP_SUFFIX) for name in found if name.endswith(f"{_SUFFIX}{_TEMP_SUFFIX}")
        } - whole
        whole |= {name for name in beside if self._read_temp(f"{folder}/{name}") is not None}
        return tuple(sorted(name.removesuffix(_SUFFIX) for name in whole))

    def remove(self, path: str) -> None:
        """Delete the file, and before it what lies beside its place."""
        files, place, jvm = file_system(self._spark, path)
        files.delete(jvm.org.apache.hadoop.fs.Path(f"{path}{_TEMP_SUFFIX}"), False)
        files.delete(place, False)

    def _whole(self, path: str, looks: int = _LOOKS) -> str:
        """The text of a file; of one that is being replaced once its checksum is that of the new one, too: on a local
        disk Hadoop moves them one after the other.
        """
        try:
            return read_text(self._spark, path)
        except Py4JJavaError as error:
            if not _is_checksum_error(error):
                raise
            if looks == 1:
                raise NoControlRow.at(path, "a control row is not what its checksum says") from error
        time.sleep(_MOMENT_SECONDS)
        return self._whole(path, looks - 1)

    def _read_temp(self, path: str) -> dict[str, Any] | None:
        """The object of a writer that died between delete and rename in :meth:`put`; None where it died earlier."""
        beside = f"{path}{_TEMP_SUFFIX}"
        if not exists(self._spark, beside):
            return None
        try:
            return controlrow.read(path, read_text(self._spark, beside))
        except NoControlRow:  # cut off
            return None
        except Py4JJavaError as error:
            if is_absent(error):
                return self.get(path)  # it was moved to its place
            if _is_checksum_error(error):
                return None
            raise


def _is_checksum_error(error: Py4JJavaError) -> bool:
    """Whether a file is not what its checksum says."""
    return str(error.java_exception.getClass().getName()) == _CHECKSUM_ERROR


class MemoryControl:
    """``Control`` in a dict, for tests and for ``MemoryFormat``."""

    def __init__(self) -> None:
        self._objects: dict[str, str] = {}

    def get(self, path: str) -> dict[str, Any] | None:
        """The object, None if nothing was ever written."""
        text = self._objects.get(path)
        return None if text is None else dict(json.loads(text))

    def put(self, path: str, value: Mapping[str, Any]) -> None:
        """Keep the object."""
        self._objects[path] = json.dumps(value)

    def under(self, folder: str) -> tuple[str, ...]:
        """From the paths."""
        names = [path.removeprefix(f"{folder}/") for path in self._objects if path.startswith(f"{folder}/")]
        return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if "/" not in name))

    def remove(self, path: str) -> None:
        """Drop the object."""
        self._objects.pop(path, None)


def list_folders(spark: SparkSession, folder: str) -> tuple[str, ...]:
    """Names of the folders directly below; empty if there is no such folder. Raises Unreachable, ConfigError."""
    files, place, _ = file_system(spark, folder)
    try:
        if not files.exists(place):
            return ()
        return tuple(sorted(str(s.getPath().getName()) for s in files.listStatus(place) if s.isDirectory()))
    except Py4JJavaError as error:
        raise read_error(folder, error) from error


def exists(spark: SparkSession, path: str) -> bool:
    """Whether a file or folder is there. Raises Unreachable, ConfigError."""
    files, place, _ = file_system(spark, path)
    try:
        return bool(files.exists(place))
    except Py4JJavaError as error:
        raise read_error(path, error) from error


def has_file_matching(spark: SparkSession, folder: str, pattern: re.Pattern[str]) -> bool:
    """Whether some file's name directly below the folder is of the pattern: asked of a store by one listing, which ends
    with the first. Raises Unreachable, ConfigError.
    """
    files, place, _ = file_system(spark, folder)
    local = _local_path(files, place)
    if local is not None:
        return any(map(pattern.fullmatch, os.listdir(local)))
    try:
        found = files.listStatusIterator(place)
        while found.hasNext():
            if pattern.fullmatch(str(found.next().getPath().getName())):
                return True
    except Py4JJavaError as error:
        if is_absent(error):
            return False
        raise read_error(folder, error) from error
    return False


def list_files(spark: SparkSession, folder: str) -> list[tuple[str, int]]:
    """Paths below a folder of the files there at any depth, and when each was changed, in epoch milliseconds. Raises
    Unreachable.
    """
    return [(path, changed) for path, _, changed in _list_recursive(spark, folder)]


def remove(spark: SparkSession, folder: str) -> None:
    """Delete a folder with all that is in it; nothing happens if it is not there. Raises Unreachable, ConfigError."""
    files, place, _ = file_system(spark, folder)
    try:
        files.delete(place, True)
    except Py4JJavaError as error:
        raise read_error(folder, error) from error


def usage(spark: SparkSession, folder: str) -> tuple[int, int]:
    """How many files lie below a folder at any depth, and their bytes; hidden files and folders, and those whose names
    begin with ``_``, do not count. Raises Unreachable, ConfigError.
    """
    found = _list_recursive(spark, folder)
    sizes = [size for path, size, _ in found if not any(part.startswith((".", "_")) for part in path.split("/"))]
    return len(sizes), sum(sizes)


def _list_recursive(spark: SparkSession, folder: str) -> list[tuple[str, int, int]]:
    """Path below the folder, bytes and time of change of each file in it."""
    files, place, jvm = file_system(spark, folder)
    local = _local_path(files, place)
    if local is not None:
        return list(_list_local(local))
    root = unquote(gateway.uri(files.makeQualified(place)))
    try:
        listed = jvm.org.apache.hadoop.util.functional.RemoteIterators.toList(files.listFiles(place, True))
        found = gateway.file_statuses(spark, jvm.PythonUtils.toSeq(listed))
    except Py4JJavaError as error:
        raise read_error(folder, error) from error
    return [(unquote(uri)[len(root) + 1 :], size, changed) for uri, size, changed in found]


def _local_path(files: Any, place: Any) -> str | None:
    """The path of a folder on this machine's disk; None where it is elsewhere, or not there."""
    root = unquote(gateway.uri(files.makeQualified(place)))
    return local if root.startswith(_LOCAL) and os.path.isdir(local := root.removeprefix(_LOCAL)) else None


def _list_local(folder: str) -> Iterator[tuple[str, int, int]]:
    """The same of a local folder, for each of whose files Hadoop would start a program that tells its mode. Its own
    checksums are no files, and a file that goes meanwhile is none.
    """
    for where, _, found in os.walk(folder, followlinks=True):
        for name in found:
            if name.startswith(".") and name.endswith(".crc"):
                continue
            path = os.path.join(where, name)
            with suppress(FileNotFoundError):
                told = os.stat(path)
                yield os.path.relpath(path, folder), told.st_size, told.st_mtime_ns // 1_000_000
