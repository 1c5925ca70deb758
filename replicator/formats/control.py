"""Control rows and folders on the lake's file system (local disk or object store), through Hadoop's client."""

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
    """``Control`` as JSON files: one small object per path, replaced as a whole.

    A new object is written to a temporary file next to its path; then the old file is deleted and the new one renamed.
    A complete temporary file without a file at the path is therefore the object; an incomplete one is from a writer
    that died while writing it.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def get(self, path: str) -> dict[str, Any] | None:
        """The object, None if the file is missing. Raises NoControlRow for a corrupt file."""
        if exists(self._spark, path):
            try:
                return controlrow.read(path, self._whole(path))
            except Py4JJavaError as error:
                if not is_absent(error):
                    raise
                return self.get(path)  # it was just being replaced
        found = self._read_temp(path)
        # it may have been renamed between the two reads
        return self.get(path) if found is None and exists(self._spark, path) else found

    def put(self, path: str, value: Mapping[str, Any]) -> None:
        """Write a temporary file, then rename it: a crash leaves the old object or the complete new one."""
        files, place, jvm = file_system(self._spark, path)
        beside = jvm.org.apache.hadoop.fs.Path(f"{path}{_TEMP_SUFFIX}")
        if not exists(self._spark, path) and self._read_temp(path) is not None:
            files.rename(beside, place)  # otherwise the only copy would be overwritten
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
        """The names of the objects directly below a folder."""
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
        """Delete the file, and before it a temporary one."""
        files, place, jvm = file_system(self._spark, path)
        files.delete(jvm.org.apache.hadoop.fs.Path(f"{path}{_TEMP_SUFFIX}"), False)
        files.delete(place, False)

    def _whole(self, path: str, looks: int = _LOOKS) -> str:
        """The text of a file. If it does not match its checksum, retry: on a local disk Hadoop renames the two one
        after the other.
        """
        try:
            return read_text(self._spark, path)
        except Py4JJavaError as error:
            if not _is_checksum_error(error):
                raise
            if looks == 1:
                raise NoControlRow.at(path, "control row does not match its checksum") from error
        time.sleep(_MOMENT_SECONDS)
        return self._whole(path, looks - 1)

    def _read_temp(self, path: str) -> dict[str, Any] | None:
        """The object of a writer that died between delete and rename in :meth:`put`; None if it died earlier."""
        beside = f"{path}{_TEMP_SUFFIX}"
        if not exists(self._spark, beside):
            return None
        try:
            return controlrow.read(path, read_text(self._spark, beside))
        except NoControlRow:  # cut off
            return None
        except Py4JJavaError as error:
            if is_absent(error):
                return self.get(path)  # it was renamed
            if _is_checksum_error(error):
                return None
            raise


def _is_checksum_error(error: Py4JJavaError) -> bool:
    """Whether a file did not match its checksum."""
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
        """Store the object."""
        self._objects[path] = json.dumps(value)

    def under(self, folder: str) -> tuple[str, ...]:
        """The names of the objects directly below a folder."""
        names = [path.removeprefix(f"{folder}/") for path in self._objects if path.startswith(f"{folder}/")]
        return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if "/" not in name))

    def remove(self, path: str) -> None:
        """Delete the object."""
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
    """Whether a file or folder exists. Raises Unreachable, ConfigError."""
    files, place, _ = file_system(spark, path)
    try:
        return bool(files.exists(place))
    except Py4JJavaError as error:
        raise read_error(path, error) from error


def has_file_matching(spark: SparkSession, folder: str, pattern: re.Pattern[str]) -> bool:
    """Whether the name of some file directly below the folder matches the pattern. An object store is listed once, up
    to the first match. Raises Unreachable, ConfigError.
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
    """The files below a folder at any depth: relative path and modification time in epoch milliseconds. Raises
    Unreachable.
    """
    return [(path, changed) for path, _, changed in _list_recursive(spark, folder)]


def remove(spark: SparkSession, folder: str) -> None:
    """Delete a folder and its contents; does nothing if it does not exist. Raises Unreachable, ConfigError."""
    files, place, _ = file_system(spark, folder)
    try:
        files.delete(place, True)
    except Py4JJavaError as error:
        raise read_error(folder, error) from error


def usage(spark: SparkSession, folder: str) -> tuple[int, int]:
    """The number of files below a folder at any depth, and their bytes; hidden files and folders, and those whose names
    begin with ``_``, do not count. Raises Unreachable, ConfigError.
    """
    found = _list_recursive(spark, folder)
    sizes = [size for path, size, _ in found if not any(part.startswith((".", "_")) for part in path.split("/"))]
    return len(sizes), sum(sizes)


def _list_recursive(spark: SparkSession, folder: str) -> list[tuple[str, int, int]]:
    """Relative path, bytes and modification time of each file below the folder."""
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
    """The path of a folder on the local disk; None if it is elsewhere, or does not exist."""
    root = unquote(gateway.uri(files.makeQualified(place)))
    return local if root.startswith(_LOCAL) and os.path.isdir(local := root.removeprefix(_LOCAL)) else None


def _list_local(folder: str) -> Iterator[tuple[str, int, int]]:
    """The same for a local folder, without Hadoop, which would start a process per file to read its mode. Hadoop's
    checksum files and files that disappear meanwhile are left out.
    """
    for where, _, found in os.walk(folder, followlinks=True):
        for name in found:
            if name.startswith(".") and name.endswith(".crc"):
                continue
            path = os.path.join(where, name)
            with suppress(FileNotFoundError):
                status = os.stat(path)
                yield os.path.relpath(path, folder), status.st_size, status.st_mtime_ns // 1_000_000
