"""UDFs written in Java: compiled on demand by the compiler that Spark includes (Janino), and shipped to all of Spark's
executors (decision 0077).

No JAR has to be built, shipped or configured: the source is beside the Python code that uses it.
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
"""The class on which functions over JSON are based."""

_DATA_TYPE = "org.apache.spark.sql.types.DataType"


def create(
    spark: SparkSession, name: str, returns: str, *given: Any, uses: str | None = None, pure: bool = True
) -> Callable[..., Column]:
    """Return a function of columns: an instance of one of Spark's ``UDF1`` to ``UDF22``, implemented by the class
    ``name``, that is package and class of a source file beside the Python of that package. ``given`` are the arguments
    of the first of its constructors. What it uses of another class, ``uses``, must be public: each class has its own
    class loader. A function that is not ``pure`` keeps state in its task, and is called once for each row.
    """
    with _compile_lock:
        used = None if uses is None else _load_class(spark, uses)
        class_ = _load_class(spark, name, used)
    values = _array(spark, gateway.of(spark).java.lang.Object, *given)
    return _to_udf(spark, class_.getConstructors()[0].newInstance(values), returns, pure=pure)


def _load_class(spark: SparkSession, name: str, used: Any = None) -> Any:
    """The class, compiled once per JVM."""
    classes = _compiled.setdefault(spark.sparkContext, {})
    if name not in classes:
        classes[name] = _compile(spark, name, used)
    return classes[name]


def _compile(spark: SparkSession, name: str, used: Any) -> Any:
    jvm = gateway.of(spark)
    package, _, simple = name.rpartition(".")
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    parent_loader = (
        jvm.java.lang.Thread.currentThread().getContextClassLoader() if used is None else used.getClassLoader()
    )
    compiler.setParentClassLoader(parent_loader)
    compiler.cook((files(package) / f"{simple}.java").read_text(encoding="utf-8"))
    _ship_to_executors(spark, simple, {str(each): bytes(code) for each, code in compiler.getBytecodes().items()})
    return compiler.getClassLoader().loadClass(name)


def _ship_to_executors(spark: SparkSession, simple: str, classes: dict[str, bytes]) -> None:
    """Executors load classes from JARs only; Spark's own temporary folder for Python is removed with the
    application.
    """
    context: Any = spark.sparkContext
    jar = Path(tempfile.mkdtemp(dir=context._temp_dir)) / f"replicator-{simple}.jar"  # noqa: SLF001 - Spark removes it
    with zipfile.ZipFile(jar, "w") as out:
        for each, code in classes.items():
            out.writestr(f"{each.replace('.', '/')}.class", code)
    context._jsc.addJar(str(jar))  # noqa: SLF001 - pyspark has no API for it


def _to_udf(spark: SparkSession, java: Any, returns: str, *, pure: bool) -> Callable[..., Column]:
    jvm = gateway.of(spark)
    named = jvm.java.lang.Class.forName
    # Spark's other `udf` accepts any object, and py4j chooses between the two at random
    kinds = _array(spark, jvm.java.lang.Class, java.getClass().getInterfaces()[0], named(_DATA_TYPE))
    udf = named("org.apache.spark.sql.functions").getMethod("udf", kinds)
    kind = jvm.org.apache.spark.sql.types.DataType.fromDDL(returns)
    function = udf.invoke(None, _array(spark, jvm.java.lang.Object, java, kind))
    function = function if pure else function.asNondeterministic()

    def called(*columns: Column) -> Column:
        return Column(function.apply(jvm.PythonUtils.toSeq([column._jc for column in columns])))  # noqa: SLF001

    return called


def _array(spark: SparkSession, kind: Any, *values: Any) -> Any:
    """A Java array of objects of a class."""
    array: Any = spark.sparkContext._gateway.new_array(kind, len(values))  # type: ignore[union-attr]  # noqa: SLF001
    for index, value in enumerate(values):
        array[index] = value
    return array
