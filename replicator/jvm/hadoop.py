"""Small files through Hadoop's client: on the file systems that Spark uses, local disk and object stores alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from replicator import s3
from replicator.jvm import causes, gateway

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import SparkSession

    from replicator.errors import ReplicatorError

_ABSENT = frozenset({"java.io.FileNotFoundException", "java.nio.file.NoSuchFileException"})


def file_system(spark: SparkSession, path: str) -> tuple[Any, Any, Any]:
    """The file system of a path, the path as Hadoop has it, and the JVM. Raises Unreachable, ConfigError."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - `--help` loads no pyspark

    jvm = gateway.of(spark)  # its file systems are the ones Spark uses
    place = jvm.org.apache.hadoop.fs.Path(path)
    try:
        return place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), place, jvm  # noqa: SLF001
    except Py4JJavaError as error:
        raise read_error(path, error) from error


def read_error(path: str, error: Py4JJavaError) -> ReplicatorError:
    """An error of the client as ours: see ``s3.read_error``."""
    java = error.java_exception
    said = str(java.getMessage() or "").strip()
    reason = said.splitlines()[0] if said else str(java.getClass().getName())
    return s3.read_error(reason, path, is_refused=causes.is_access_denied(error))


def is_absent(error: Py4JJavaError) -> bool:
    """Whether that is an error of the client because nothing lies at the path."""
    return str(error.java_exception.getClass().getName()) in _ABSENT


def read_text(spark: SparkSession, path: str) -> str:
    """What a file holds."""
    files, place, jvm = file_system(spark, path)
    stream = files.open(place)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
