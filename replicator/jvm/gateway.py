"""Shorter paths to the JVM than pyspark's own.

pyspark looks up ``functions`` and ``PythonUtils``, and then the method, again for every column expression, and the JVM
searches all JARs for each star import before it finds them; for a dotted name, once for each of its parts. A silver
batch makes thousands of expressions: building them took longer than running them. And ``createDataFrame`` of a few rows
starts a Python worker with every job that reads them (decision 0009).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from replicator.jvm import expressions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

Result = TypeVar("Result")

_CACHED_NAMES = (
    *("functions", "org.apache.spark.sql.functions", "PythonUtils", "SerDeUtil", "PythonRDD"),
    *("org", "java", "scala", "py4j"),
)
_SESSIONS = ("SparkSession", "SparkSession$", "Dataset", "Column")
"""Looked up as often; not every Spark line's pyspark has all of them under these names."""
_LOCAL = re.compile("^file:/+")
_COUNTED, _VALUE = "replicator.counted", "__row"
_TEXTS_IN_PIECE = 2_000


class _CachedLookup:
    """A class of the JVM that caches its methods, or a package that caches its packages and classes."""

    def __init__(self, java: Any) -> None:
        self._java = java

    def __getattr__(self, name: str) -> Any:
        from py4j.java_gateway import JavaPackage  # noqa: PLC0415 - `--help` loads no pyspark

        found = getattr(self._java, name)
        found = _CachedLookup(found) if isinstance(found, JavaPackage) else found
        setattr(self, name, found)
        return found

    def __call__(self, *parts: Any) -> Any:
        """Create an object of the class."""
        return self._java(*parts)


def cache_lookups(jvm: Any) -> None:
    """Cache pyspark's most frequent lookups in its view of the JVM, and the expressions that it has built there."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - `--help` loads no pyspark

    if all(name in vars(jvm) for name in _CACHED_NAMES):
        return
    for name in _CACHED_NAMES:
        setattr(jvm, name, _CachedLookup(getattr(jvm, name)))
    for name in _SESSIONS:
        with suppress(Py4JError):
            setattr(jvm, name, _CachedLookup(getattr(jvm, name)))
    expressions.install_cache(jvm)


def of(spark: SparkSession) -> Any:
    """Return the JVM of a session, for APIs of Delta, Hadoop and Kafka that pyspark does not expose."""
    return spark.sparkContext._jvm  # noqa: SLF001


def cast_type(kind: DataType) -> DataType | str:
    """Return a type in the form that ``cast`` accepts fastest: pyspark lets the JVM parse each DataType, but not a
    name.
    """
    from pyspark.sql import types as T  # noqa: PLC0415 - `--help` loads no pyspark

    return kind.simpleString() if isinstance(kind, T.AtomicType) else kind


def iterate(scala: Any) -> Iterator[Any]:
    """Iterate over a Scala collection, or the rest of an iterator; a map contains pairs (see :func:`to_tuple`)."""
    left = scala.toIterator()
    while left.hasNext():
        yield left.next()


def to_tuple(scala: Any) -> tuple[Any, Any]:
    """Convert a Scala pair."""
    return scala._1(), scala._2()  # noqa: SLF001 - their names


def uri(path: Any) -> str:
    """A Hadoop path, escaped; a local one always begins with a single slash."""
    return _LOCAL.sub("file:/", str(path.toUri().toString()))


def file_statuses(spark: SparkSession, found: Any) -> list[tuple[str, int, int]]:
    """URI (see :func:`uri`), size in bytes and modification time (epoch milliseconds) of each of Hadoop's file statuses
    in a Scala sequence.

    A round trip per file would take longer than a listing: each field of all files is transferred as one text.
    """
    if found.isEmpty():
        return []
    java = of(spark).java.lang
    named, handles = java.Class.forName, java.invoke.MethodHandles
    status, path = named("org.apache.hadoop.fs.FileStatus"), named("org.apache.hadoop.fs.Path")

    def getter(of_class: Any, name: str, kind: Any) -> Any:
        return handles.publicLookup().findVirtual(of_class, name, java.invoke.MethodType.methodType(kind))

    def every(handle: Any) -> list[str]:
        function = java.invoke.MethodHandleProxies.asInterfaceInstance(named("scala.Function1"), handle)
        return str(found.iterator().map(function).mkString("\n")).split("\n")

    to_uri = getter(path, "toUri", named("java.net.URI"))
    uris = every(handles.filterReturnValue(getter(status, "getPath", path), to_uri))
    sizes, times = (every(getter(status, name, java.Long.TYPE)) for name in ("getLen", "getModificationTime"))
    return [(_LOCAL.sub("file:/", u), int(size), int(at)) for u, size, at in zip(uris, sizes, times, strict=True)]


def clone_session(spark: SparkSession) -> SparkSession:
    """Return a session with the settings of this one; later settings apply to it alone."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - `--help` loads no pyspark

    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())  # noqa: SLF001


def inherit_context(work: Callable[[], Result]) -> Callable[[], Result]:
    """Return the same work for another thread, where its jobs have Spark's properties (pool, group) as they are set now
    in this thread, and the same active session: without one, expressions are built with Spark's defaults, not in ANSI
    mode and in the machine's time zone. pyspark's own ``inheritable_thread_target`` has different arguments on each
    Spark line.
    """
    from py4j.clientserver import ClientServer  # noqa: PLC0415 - `--help` loads no pyspark
    from pyspark import SparkContext  # noqa: PLC0415

    context: Any = SparkContext._active_spark_context  # noqa: SLF001
    if context is None or not isinstance(SparkContext._gateway, ClientServer):  # noqa: SLF001 - otherwise all threads share one Java thread
        return work
    scala = context._jsc.sc()  # noqa: SLF001
    properties = scala.getLocalProperties().clone()
    sessions = context._jvm.SparkSession  # noqa: SLF001
    active = sessions.active()

    def done() -> Result:
        scala.setLocalProperties(properties)
        sessions.setActiveSession(active)
        return work()

    return done


def to_session(rows: DataFrame, spark: SparkSession) -> DataFrame:
    """The same rows in another session: queries over them run in that one, with its settings."""
    return rows if rows.sparkSession is spark else from_plan(rows._jdf.queryExecution().analyzed(), spark)  # noqa: SLF001


def from_plan(plan: Any, spark: SparkSession) -> DataFrame:
    """The rows of a plan of Spark."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 - `--help` loads no pyspark

    return DataFrame(of(spark).Dataset.ofRows(spark._jsparkSession, plan), spark)  # noqa: SLF001


@contextmanager
def local_checkpoint(rows: DataFrame, *, whole: bool = False) -> Iterator[DataFrame]:
    """Rows computed once and kept in this process inside of the block; queries over them scan the result.

    With ``whole``, each row is stored as a single value: Spark copies every column of a stored row before it evaluates
    the first, for each query that reads a few of many columns.
    """
    stored = (_pack_rows(rows) if whole else rows).localCheckpoint()
    java_rows: Any = stored._jdf  # noqa: SLF001 - otherwise they stay until a garbage collection
    try:
        yield _unpack_rows(stored) if whole else stored
    finally:
        java_rows.queryExecution().logical().rdd().unpersist(False)


@contextmanager
def checkpoint_and_count(
    rows: DataFrame, conditions: Mapping[str, Column], where: Column | None = None, *, whole: bool = False
) -> Iterator[tuple[DataFrame, dict[str, int]]]:
    """As :func:`local_checkpoint`, with the number of rows for which each condition holds, counted in the same job. All
    rows are counted, even if only some (``where``) are kept.

    Spark takes a task's counts once, even if the task ran twice, since there is no other stage between it and the end
    of its job.
    """
    from pyspark.sql import functions as F  # noqa: PLC0415 - `--help` loads no pyspark

    counts = [F.count(F.when(condition, True)).alias(name) for name, condition in conditions.items()]
    observed = rows.observe(_COUNTED, *counts)
    observed = observed if where is None else observed.where(where)
    observed = _pack_rows(observed) if whole else observed
    with local_checkpoint(observed) as kept:
        found: Any = observed._jdf.queryExecution().observedMetrics().apply(_COUNTED)  # noqa: SLF001
        yield (
            _unpack_rows(kept) if whole else kept,
            {name: int(found.getLong(at)) for at, name in enumerate(conditions)},
        )


def _pack_rows(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: PLC0415 - `--help` loads no pyspark

    return rows.select(F.struct("*").alias(_VALUE))


def _unpack_rows(rows: DataFrame) -> DataFrame:
    return rows.select(f"{_VALUE}.*")


def stream_texts(lines: DataFrame) -> Iterator[memoryview]:
    """Yield the texts of the only column, which contains no NULL, concatenated as UTF-8, at most two thousand per
    piece. They pass through the driver by Arrow, task by task: no Python code handles a row.
    """
    import pyarrow as pa  # noqa: PLC0415 - `--help` loads neither
    from pyspark import RDD  # noqa: PLC0415
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

    spark = clone_session(lines.sparkSession)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _TEXTS_IN_PIECE)
    java: Any = to_session(lines, spark)._jdf  # noqa: SLF001 - otherwise Python unpickles each row
    batches: Any = RDD(java.toArrowBatchRdd().toJavaRDD(), spark.sparkContext, NoOpSerializer())
    schema = pa.schema([("text", pa.string())])
    for message in batches.toLocalIterator(prefetchPartitions=True):
        batch = pa.ipc.read_record_batch(pa.py_buffer(message), schema)
        if batch.num_rows:
            _, offsets, data = batch.column(0).buffers()
            yield memoryview(data)[: memoryview(offsets).cast("i")[batch.num_rows]]


def create_frame(spark: SparkSession, rows: Iterable[Sequence[Any]], schema: StructType) -> DataFrame:
    """As ``createDataFrame``, without its checks: the values must be of the schema's types. The JVM unpickles the rows
    itself.
    """
    from pyspark import serializers  # noqa: PLC0415 - `--help` loads no pyspark
    from pyspark.sql import DataFrame  # noqa: PLC0415

    context = spark.sparkContext
    jvm: Any = context._jvm  # noqa: SLF001
    java_context: Any = context._jsc  # noqa: SLF001
    pickler: Any = serializers.CPickleSerializer()
    batched: Any = serializers.AutoBatchedSerializer
    pickled = context._serialize_to_jvm(  # noqa: SLF001
        [schema.toInternal(tuple(row)) for row in rows],
        batched(pickler),
        lambda file: jvm.PythonRDD.readRDDFromFile(java_context, file, 1),
        lambda: jvm.PythonParallelizeServer(java_context.sc(), 1),
    )
    arrays = jvm.SerDeUtil.toJavaArray(jvm.SerDeUtil.pythonToJava(pickled, True)).rdd()
    return DataFrame(spark._jsparkSession.applySchemaToPythonRDD(arrays, schema.json()), spark)  # noqa: SLF001
