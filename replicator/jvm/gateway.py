"""Shorter ways to the JVM than pyspark's own.

It looks up ``functions`` and ``PythonUtils``, and then the method, anew for every column expression, and the JVM
searches all JARs for each star import before it finds them; for a name with dots, once for each of its parts. A batch
of silver makes thousands of expressions: building them took longer than running them. And ``createDataFrame`` of a few
rows starts a Python worker with every job that reads them (decision 0009).
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
"""Asked for as often; not each line of Spark's pyspark has all of them by this name."""
_LOCAL = re.compile("^file:/+")
_COUNTED, _VALUE = "replicator.counted", "__row"
_TEXTS_IN_PIECE = 2_000


class _CachedLookup:
    """A class of the JVM whose methods are asked for once, or a package whose packages and classes are."""

    def __init__(self, java: Any) -> None:
        self._java = java

    def __getattr__(self, name: str) -> Any:
        from py4j.java_gateway import JavaPackage  # noqa: PLC0415 - `--help` loads no pyspark

        found = getattr(self._java, name)
        found = _CachedLookup(found) if isinstance(found, JavaPackage) else found
        setattr(self, name, found)
        return found

    def __call__(self, *parts: Any) -> Any:
        """A new object of the class."""
        return self._java(*parts)


def cache_lookups(jvm: Any) -> None:
    """Keep what pyspark asks for most with its view of the JVM, and what it has had built there."""
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
    """The JVM of a session: what Delta, Hadoop and Kafka have and pyspark does not hand on."""
    return spark.sparkContext._jvm  # noqa: SLF001


def cast_type(kind: DataType) -> DataType | str:
    """A type as ``cast`` takes it quickest: pyspark has the JVM parse each DataType, but not a name."""
    from pyspark.sql import types as T  # noqa: PLC0415 - `--help` loads no pyspark

    return kind.simpleString() if isinstance(kind, T.AtomicType) else kind


def iterate(scala: Any) -> Iterator[Any]:
    """What a collection of Scala's holds, or what is left of an iterator; a map holds pairs (see :func:`to_tuple`)."""
    left = scala.toIterator()
    while left.hasNext():
        yield left.next()


def to_tuple(scala: Any) -> tuple[Any, Any]:
    """The two halves of a pair of Scala's."""
    return scala._1(), scala._2()  # noqa: SLF001 - their names


def uri(path: Any) -> str:
    """A path of Hadoop's, escaped; a local one begins with one slash, whoever made it."""
    return _LOCAL.sub("file:/", str(path.toUri().toString()))


def file_statuses(spark: SparkSession, found: Any) -> list[tuple[str, int, int]]:
    """URI (see :func:`uri`), bytes and time of change of each of Hadoop's file statuses in a sequence of Scala's.

    A talk with the JVM per file would take longer than a listing: each field of all files comes as one text.
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
    """A session with the settings of this one; what it is told from now on is its own."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - `--help` loads no pyspark

    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())  # noqa: SLF001


def inherit_context(work: Callable[[], Result]) -> Callable[[], Result]:
    """The same work for a thread of its own, whose jobs have Spark's properties (pool, group) as this one has them now,
    and which has the same active session: without one, an expression is built by Spark's defaults, not in ANSI mode and
    in the zone of the machine. pyspark's own ``inheritable_thread_target`` wants other arguments on each line of Spark.
    """
    from py4j.clientserver import ClientServer  # noqa: PLC0415 - `--help` loads no pyspark
    from pyspark import SparkContext  # noqa: PLC0415

    context: Any = SparkContext._active_spark_context  # noqa: SLF001
    if context is None or not isinstance(SparkContext._gateway, ClientServer):  # noqa: SLF001 - else all share one of Java's
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
    """The same rows in another session: what is made of them runs in that one, by its settings."""
    return rows if rows.sparkSession is spark else from_plan(rows._jdf.queryExecution().analyzed(), spark)  # noqa: SLF001


def from_plan(plan: Any, spark: SparkSession) -> DataFrame:
    """The rows of a plan of Spark's."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 - `--help` loads no pyspark

    return DataFrame(of(spark).Dataset.ofRows(spark._jsparkSession, plan), spark)  # noqa: SLF001


@contextmanager
def local_checkpoint(rows: DataFrame, *, whole: bool = False) -> Iterator[DataFrame]:
    """Rows computed once, and kept in this process for the time of the block; what reads them plans a scan.

    ``whole`` rows are kept as one value each: Spark copies every column of a kept row before it looks at the first, for
    each of those who want a part of many wide rows.
    """
    kept = (_pack_rows(rows) if whole else rows).localCheckpoint()
    java_rows: Any = kept._jdf  # noqa: SLF001 - else they stay until a garbage collection
    try:
        yield _unpack_rows(kept) if whole else kept
    finally:
        java_rows.queryExecution().logical().rdd().unpersist(False)


@contextmanager
def checkpoint_and_count(
    rows: DataFrame, conditions: Mapping[str, Column], where: Column | None = None, *, whole: bool = False
) -> Iterator[tuple[DataFrame, dict[str, int]]]:
    """:func:`local_checkpoint`, and for how many of the rows each condition holds: counted on the way, without a job
    more. Of all rows, where only some (``where``) are kept.

    Spark takes what a task counted once, also where the task ran twice: nothing stands between it and the end of its
    job.
    """
    from pyspark.sql import functions as F  # noqa: PLC0415 - `--help` loads no pyspark

    each_of = [F.count(F.when(condition, True)).alias(name) for name, condition in conditions.items()]
    observed = rows.observe(_COUNTED, *each_of)
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
    """The texts of the only column, which holds no NULL, one right after the other as UTF-8, two thousand a piece at
    most. They come through the driver by Arrow, the rows of one task after those of another: no Python touches a row.
    """
    import pyarrow as pa  # noqa: PLC0415 - `--help` loads neither
    from pyspark import RDD  # noqa: PLC0415
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

    spark = clone_session(lines.sparkSession)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _TEXTS_IN_PIECE)
    java: Any = to_session(lines, spark)._jdf  # noqa: SLF001 - else Python unpickles each row
    batches: Any = RDD(java.toArrowBatchRdd().toJavaRDD(), spark.sparkContext, NoOpSerializer())
    schema = pa.schema([("text", pa.string())])
    for message in batches.toLocalIterator(prefetchPartitions=True):
        batch = pa.ipc.read_record_batch(pa.py_buffer(message), schema)
        if batch.num_rows:
            _, offsets, held = batch.column(0).buffers()
            yield memoryview(held)[: memoryview(offsets).cast("i")[batch.num_rows]]


def create_frame(spark: SparkSession, rows: Iterable[Sequence[Any]], schema: StructType) -> DataFrame:
    """Rows as ``createDataFrame`` takes them, without its checks: the values must be of the schema's types. The JVM
    unpickles them itself.
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
