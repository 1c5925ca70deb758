"""Objects that a sink connector wrote, from any file system that Spark knows.

One listing serves the question what is new and the reading: it is flat, on object stores with one request per thousand
objects, and Spark is given it for its own.
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
"""Half an archive must not keep all other objects out: what is missing in the end is told."""

_HIDDEN = re.compile(r"/(?:[.]|_[^/=]*(?:/|$))")


@dataclass(frozen=True)
class ObjectsListing:
    """What one listing found: ``objects`` of the source's topics, and paths that are ``strange``: no object's.

    ``files`` are the texts of all that was listed; ``uris`` says by a path what Spark calls it.
    """

    objects: tuple[LandingObject, ...]
    strange: tuple[str, ...]
    files: DataFrame | None
    uris: Mapping[str, str]

    def read(self, objects: Sequence[LandingObject]) -> DataFrame:
        """One row per object: the fields of ``LandingObject``, and ``content BINARY``, decompressed.

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
        names = gateway.create_frame(spark, rows, _fields(spark))
        return contents.coalesce(tasks).join(F.broadcast(names), "uri", how="inner").drop("uri")


@dataclass(frozen=True)
class ObjectsSource:
    """Objects below ``root``, of topics that match ``topics`` (a regular expression)."""

    root: str
    topics: str

    def listed(self, spark: SparkSession) -> ObjectsListing:
        """What is there now; nothing where the folder is not there. Files whose name or folder begins with ``_`` or
        ``.`` are not seen: so do writers hide what is not done. Raises NO_LAKE.
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
            mend="Check that the store runs, and that `objects` and its keys are right; then run again.",
        )


def _fields(spark: SparkSession) -> StructType:
    ddl = "uri STRING, path STRING, topic STRING, partition INT, offset BIGINT, size BIGINT, modified BIGINT"
    return spark.createDataFrame([], ddl).schema


def _list_files(spark: SparkSession, root: str) -> Any:
    """Spark's index of all files below a folder, made of one flat listing.

    Left to itself Spark lists each folder alone: on an object store that is a request per object where each has a
    folder of its own.
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
    """A text per file: where lines lie in a file is lost once Spark has cut it."""
    jvm = gateway.of(spark)
    datasources = jvm.org.apache.spark.sql.execution.datasources
    text, columns = datasources.text.TextFileFormat(), jvm.org.apache.spark.sql.types.StructType
    value = columns().add("value", "string")
    options, nothing = jvm.PythonUtils.toScalaMap(_READING), jvm.scala.Option.apply(None)
    session = spark._jsparkSession  # noqa: SLF001
    relation = datasources.HadoopFsRelation(index, columns(), value, nothing, text, options, session)
    return DataFrame(session.baseRelationToDataFrame(relation), spark)
