"""Objects that a sink connector wrote, from any file system that Spark knows.

One listing serves the question what is new and the reading: Spark makes it, on object stores with one request per
thousand objects and no request for a single one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import gateway, landed
from replicator.errors import Unreachable
from replicator.landed import Landed

_PER_TASK = 64
_READING = {"recursiveFileLookup": "true", "ignoreCorruptFiles": "true", "ignoreMissingFiles": "true"}
"""Half an archive must not keep all other objects out: what is missing in the end is told."""

_NOT_THERE = "PATH_NOT_FOUND"
_LOCAL = re.compile("^file:/+")
_PATTERN = re.compile(r"[{}\[\]*?\\]")


@dataclass(frozen=True)
class ObjectsListing:
    """What one listing found: ``objects`` of the source's topics, and paths that are ``strange``: no object's.

    ``files`` are the texts of all that was listed; ``uris`` says by a path what Spark calls it.
    """

    objects: tuple[Landed, ...]
    strange: tuple[str, ...]
    files: DataFrame | None
    uris: Mapping[str, str]

    def read(self, objects: Sequence[Landed]) -> DataFrame:
        """One row per object: the fields of ``Landed``, and ``content BINARY``, decompressed.

        None for an object that has gone since or cannot be read.
        """
        if self.files is None:
            raise ValueError("nothing was listed")
        spark = self.files.sparkSession
        uri = F.col("_metadata.file_path")
        # Spark reads those files only whose URI the condition lets pass
        wanted = self.files.where(uri.isin([self.uris[each.path] for each in objects]))
        contents = wanted.select(uri.alias("uri"), F.col("value").cast("binary").alias("content"))
        tasks = min(spark.sparkContext.defaultParallelism, 1 + len(objects) // _PER_TASK)
        rows = [(self.uris[each.path], *astuple(each)) for each in objects]
        names = gateway.frame(spark, rows, _fields(spark))
        return contents.coalesce(tasks).join(F.broadcast(names), "uri", how="inner").drop("uri")


@dataclass(frozen=True)
class ObjectsSource:
    """Objects below ``root``, of topics that match ``topics`` (a regular expression)."""

    root: str
    topics: str

    def listed(self, spark: SparkSession) -> ObjectsListing:
        """What is there now; nothing where the folder is not there. Files whose name or folder begins with ``_`` or
        ``.`` are not seen: so do writers hide what is not done. Raises Unreachable.
        """
        try:
            # a text per file: where lines lie in a file is lost once Spark has cut it
            root = _PATTERN.sub(r"\\\g<0>", self.root)
            files = spark.read.options(**_READING).text(root, wholetext=True)
            found = _statuses(spark, files)
        except AnalysisException as error:
            if error.getErrorClass() == _NOT_THERE:
                return ObjectsListing((), (), None, {})
            raise self._unlisted(error) from error
        except (Py4JJavaError, PySparkException) as error:
            raise self._unlisted(error) from error
        return self._sorted_out(found, files)

    def _sorted_out(self, found: Sequence[tuple[str, int, int]], files: DataFrame) -> ObjectsListing:
        pattern = re.compile(self.topics)
        objects, strange = [], []
        uris = {unquote(uri): uri for uri, _, _ in found}
        for (path, _), (_, size, modified) in zip(uris.items(), found, strict=True):
            each = landed.parse(path, size, modified)
            if each is None:
                strange.append(path)
            elif pattern.fullmatch(each.topic):
                objects.append(each)
        return ObjectsListing(tuple(objects), tuple(sorted(strange)), files, uris)

    def _unlisted(self, error: Exception) -> Unreachable:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        return Unreachable(
            f"the objects cannot be listed: {reason}",
            where=self.root,
            mend="Check that the store runs, and that `objects` and its keys are right; then run again.",
        )


def _fields(spark: SparkSession) -> StructType:
    ddl = "uri STRING, path STRING, topic STRING, partition INT, offset BIGINT, size BIGINT, modified BIGINT"
    return spark.createDataFrame([], ddl).schema


def _statuses(spark: SparkSession, files: DataFrame) -> list[tuple[str, int, int]]:
    """URI, bytes and time of each file that Spark has listed for a DataFrame.

    A talk with the JVM per file would take longer than the listing: each field of all files comes as one text.
    """
    jvm = gateway.of(spark)
    scanned = files._jdf.queryExecution().analyzed().collectLeaves().head()  # noqa: SLF001
    statuses = scanned.relation().location().allFiles()
    if statuses.isEmpty():
        return []
    java, named = jvm.java.lang, jvm.java.lang.Class.forName
    status, path = named("org.apache.hadoop.fs.FileStatus"), named("org.apache.hadoop.fs.Path")
    handles = java.invoke.MethodHandles

    def getter(of: Any, name: str, kind: Any) -> Any:
        return handles.publicLookup().findVirtual(of, name, java.invoke.MethodType.methodType(kind))

    def each(handle: Any) -> list[str]:
        function = java.invoke.MethodHandleProxies.asInterfaceInstance(named("scala.Function1"), handle)
        return str(statuses.iterator().map(function).mkString("\n")).split("\n")

    uri = getter(path, "toUri", named("java.net.URI"))
    uris = each(handles.filterReturnValue(getter(status, "getPath", path), uri))
    sizes, times = (each(getter(status, name, java.Long.TYPE)) for name in ("getLen", "getModificationTime"))
    return [(_LOCAL.sub("file:/", u), int(size), int(at)) for u, size, at in zip(uris, sizes, times, strict=True)]
