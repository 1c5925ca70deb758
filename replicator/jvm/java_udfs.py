"""Java of our own: compiled by the compiler that Spark brings with it (Janino) where it is needed, and handed to all of
Spark's executors (decision 0077).

No JAR of ours has to be built, shipped or named: what runs is the source beside the Python that asks for it.
"""

from __future__ import annotations

import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql import Column

from replicator.jvm import gateway

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_compiled: WeakKeyDictionary[SparkContext, dict[str, Any]] = WeakKeyDictionary()
_compile_lock = Lock()
JSON = "replicator.debezium.Json"
"""The class that functions over JSON go by."""

_DATA_TYPE = "org.apache.spark.sql.types.DataType"


def create(
    spark: SparkSession, name: str, returns: str, *given: Any, uses: str | None = None, pure: bool = True
) -> Callable[..., Column]:
    """A function of columns: one of Spark's ``UDF1`` to ``UDF22``, which the class ``name`` implements. That is package
    and class, of a file of ours beside the Python of that package; ``given`` is for the first of its constructors.
    What another class is to it, which it ``uses``, must be public: each has a class loader of its own. One that is not
    ``pure`` remembers what it was told before in its task, and is asked once for each row.
    """
    with _compile_lock:
        beside = None if uses is None else _load_class(spark, uses)
        made = _load_class(spark, name, beside)
    values = _array(spark, gateway.of(spark).java.lang.Object, *given)
    return _to_udf(spark, made.getConstructors()[0].newInstance(values), returns, pure=pure)


def _load_class(spark: SparkSession, name: str, beside: Any = None) -> Any:
    """The class, compiled once in this JVM."""
    classes = _compiled.setdefault(spark.sparkContext, {})
    if name not in classes:
        classes[name] = _compile(spark, name, beside)
    return classes[name]


def _compile(spark: SparkSession, name: str, beside: Any) -> Any:
    jvm = gateway.of(spark)
    package, _, simple = name.rpartition(".")
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    around = jvm.java.lang.Thread.currentThread().getContextClassLoader() if beside is None else beside.getClassLoader()
    compiler.setParentClassLoader(around)
    compiler.cook((files(package) / f"{simple}.java").read_text(encoding="utf-8"))
    _ship_to_executors(spark, simple, {str(each): bytes(code) for each, code in compiler.getBytecodes().items()})
    return compiler.getClassLoader().loadClass(name)


def _ship_to_executors(spark: SparkSession, simple: str, classes: dict[str, bytes]) -> None:
    """Executors find classes in JARs alone; Spark's own folder for what Python leaves goes with the application."""
    context: Any = spark.sparkContext
    jar = Path(tempfile.mkdtemp(dir=context._temp_dir)) / f"replicator-{simple}.jar"  # noqa: SLF001 - Spark removes it
    with zipfile.ZipFile(jar, "w") as out:
        for each, code in classes.items():
            out.writestr(f"{each.replace('.', '/')}.class", code)
    context._jsc.addJar(str(jar))  # noqa: SLF001 - pyspark has no way of its own


def _to_udf(spark: SparkSession, java: Any, returns: str, *, pure: bool) -> Callable[..., Column]:
    jvm = gateway.of(spark)
    named = jvm.java.lang.Class.forName
    # Spark's other `udf` takes any object, and py4j now this, now that one
    kinds = _array(spark, jvm.java.lang.Class, java.getClass().getInterfaces()[0], named(_DATA_TYPE))
    udf = named("org.apache.spark.sql.functions").getMethod("udf", kinds)
    kind = jvm.org.apache.spark.sql.types.DataType.fromDDL(returns)
    told = udf.invoke(None, _array(spark, jvm.java.lang.Object, java, kind))
    told = told if pure else told.asNondeterministic()

    def called(*columns: Column) -> Column:
        return Column(told.apply(jvm.PythonUtils.toSeq([column._jc for column in columns])))  # noqa: SLF001

    return called


def _array(spark: SparkSession, kind: Any, *values: Any) -> Any:
    """An array of Java's of some objects of a class."""
    made: Any = spark.sparkContext._gateway.new_array(kind, len(values))  # type: ignore[union-attr]  # noqa: SLF001
    for at, value in enumerate(values):
        made[at] = value
    return made
