"""Small files through Hadoop's client: on the file systems that Spark uses, local disks and object stores alike."""

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
    """Return the file system of a path, Hadoop's path, and the JVM. Raises Unreachable, ConfigError."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - `--help` loads no pyspark

    jvm = gateway.of(spark)  # it has the file systems that Spark uses
    place = jvm.org.apache.hadoop.fs.Path(path)
    try:
        return place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), place, jvm  # noqa: SLF001
    except Py4JJavaError as error:
        raise read_error(path, error) from error


def read_error(path: str, error: Py4JJavaError) -> ReplicatorError:
    """Return the error for one of the client: see ``s3.read_error``."""
    java = error.java_exception
    message = str(java.getMessage() or "").strip()
    reason = message.splitlines()[0] if message else str(java.getClass().getName())
    return s3.read_error(reason, path, is_refused=causes.is_access_denied(error))


def is_absent(error: Py4JJavaError) -> bool:
    """Whether an error of the client means that nothing exists at the path."""
    return str(error.java_exception.getClass().getName()) in _ABSENT


def read_text(spark: SparkSession, path: str) -> str:
    """Return the content of a file."""
    files, place, jvm = file_system(spark, path)
    stream = files.open(place)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
