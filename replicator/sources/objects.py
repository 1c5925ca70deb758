"""Objects written by a sink connector, on any file system that Spark supports.

One listing serves both to find new objects and to read them: it is flat, with one request per thousand objects on
object stores, and Spark reuses it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import landing_objects, s3
from replicator.errors import StoreRefused, Unreachable
from replicator.jvm import causes, gateway
from replicator.jvm.hadoop import is_absent
from replicator.landing_objects import LandingObject

_PER_TASK = 64
_READING = {
    "recursiveFileLookup": "true",
    "wholetext": "true",
    "ignoreCorruptFiles": "true",
    "ignoreMissingFiles": "true",
}
"""One truncated archive must not block all other objects: what could not be read is reported at the end."""

_HIDDEN = re.compile(r"/(?:[.]|_[^/=]*(?:/|$))")


@dataclass(frozen=True)
class ObjectsListing:
    """The result of one listing: ``objects`` of the source's topics, and ``unrecognized`` paths, which are not those of
    objects.

    ``files`` are the texts of everything listed; ``uris`` maps a path to Spark's URI of it.
    """

    objects: tuple[LandingObject, ...]
    unrecognized: tuple[str, ...]
    files: DataFrame | None
    uris: Mapping[str, str]

    def read(self, objects: Sequence[LandingObject]) -> DataFrame:
        """Return one row per object: the fields of ``LandingObject``, and ``content BINARY``, decompressed.

        An object that has disappeared since or cannot be read has no row.
        """
        if self.files is None:
            raise ValueError("nothing was listed")
        spark = self.files.sparkSession
        uri = F.col("_metadata.file_path")
        # Spark reads only those files whose URI passes the condition
        wanted = self.files.where(uri.isin([self.uris[each.path] for each in objects]))
        contents = wanted.select(uri.alias("uri"), F.col("value").cast("binary").alias("content"))
        tasks = min(spark.sparkContext.defaultParallelism, 1 + len(objects) // _PER_TASK)
        rows = [(self.uris[each.path], *astuple(each)) for each in objects]
        names = gateway.create_frame(spark, rows, _fields(spark))
        return contents.coalesce(tasks).join(F.broadcast(names), "uri", how="inner").drop("uri")


@dataclass(frozen=True)
class ObjectsSource:
    """Objects below ``root``, of topics that match ``topics`` (a regular expression)."""

    root: str
    topics: str

    def list_objects(self, spark: SparkSession) -> ObjectsListing:
        """List what exists now; nothing if the folder does not exist. Files whose name or folder begins with ``_`` or
        ``.`` are ignored, since writers hide unfinished files so. Raises NO_LAKE.
        """
        try:
            index = _list_files(spark, self.root)
            found = gateway.file_statuses(spark, index.allFiles())
            files = _texts(spark, index)
        except Py4JJavaError as error:
            if is_absent(error):
                return ObjectsListing((), (), None, {})
            raise self._listing_error(error) from error
        root = unquote(gateway.uri(index.rootPaths().head()))
        return self._sorted_out(found, files, root)

    def _sorted_out(self, found: Sequence[tuple[str, int, int]], files: DataFrame, root: str) -> ObjectsListing:
        pattern = re.compile(self.topics)
        objects, strange = [], []
        uris = {unquote(uri): uri for uri, _, _ in found}
        for (path, _), (_, size, modified) in zip(uris.items(), found, strict=True):
            each = landing_objects.parse(path, size, modified)
            if _HIDDEN.search(path[len(root) :]):
                continue
            if each is None:
                strange.append(path)
            elif pattern.fullmatch(each.topic):
                objects.append(each)
        return ObjectsListing(tuple(objects), tuple(sorted(strange)), files, uris)

    def _listing_error(self, error: Py4JJavaError) -> Unreachable | StoreRefused:
        if causes.is_access_denied(error):
            return s3.access_error(causes.summarize(error), self.root)
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        return Unreachable(
            f"the objects cannot be listed: {reason}",
            where=self.root,
            fix="Check that the store is running and that `objects` and its keys are correct; then run again.",
        )


def _fields(spark: SparkSession) -> StructType:
    ddl = "uri STRING, path STRING, topic STRING, partition INT, offset BIGINT, size BIGINT, modified BIGINT"
    return spark.createDataFrame([], ddl).schema


def _list_files(spark: SparkSession, root: str) -> Any:
    """Spark's index of all files below a folder, made from one flat listing.

    Spark itself lists each folder separately: on an object store, that is one request per object if each has a folder
    of its own.
    """
    jvm = gateway.of(spark)
    session = spark._jsparkSession  # noqa: SLF001
    path = jvm.org.apache.hadoop.fs.Path(root)
    system = path.getFileSystem(session.sessionState().newHadoopConf())
    found = jvm.org.apache.hadoop.util.functional.RemoteIterators.toList(system.listFiles(path, True)).toArray()
    kind = jvm.java.lang.Class.forName("[Lorg.apache.hadoop.fs.FileStatus;")
    statuses = jvm.java.util.Arrays.copyOf(found, len(found), kind)
    root_path, datasources = system.makeQualified(path), jvm.org.apache.spark.sql.execution.datasources
    cache = datasources.FileStatusCache.getOrCreate(session)
    cache.putLeafFiles(root_path, statuses)
    nothing, options = jvm.scala.Option.apply(None), jvm.PythonUtils.toScalaMap(_READING)
    roots = jvm.PythonUtils.toSeq([root_path])
    index = datasources.InMemoryFileIndex(session, roots, options, nothing, cache, nothing, nothing)
    cache.invalidateAll()  # the index has a copy
    return index


def _texts(spark: SparkSession, index: Any) -> DataFrame:
    """One text per file: the position of a line in its file is lost once Spark has split it."""
    jvm = gateway.of(spark)
    datasources = jvm.org.apache.spark.sql.execution.datasources
    text, columns = datasources.text.TextFileFormat(), jvm.org.apache.spark.sql.types.StructType
    value = columns().add("value", "string")
    options, nothing = jvm.PythonUtils.toScalaMap(_READING), jvm.scala.Option.apply(None)
    session = spark._jsparkSession  # noqa: SLF001
    relation = datasources.HadoopFsRelation(index, columns(), value, nothing, text, options, session)
    return DataFrame(session.baseRelationToDataFrame(relation), spark)
