"""Sessions in which people's SQL runs: it sees the tables that it was given, and starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator.jvm import gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# They call any Java method: no question to a lake needs that.
_NO_FUNCTIONS = ("reflect", "java_method", "try_reflect")


def restrict(spark: SparkSession) -> None:
    """Paths are no tables here, and no function runs Java or opens what it is told (reliability.md section 12). Of
    those that give tables Spark's own do neither; a format's do, as Delta's ``table_changes_by_path``.
    """
    spark.conf.set("spark.sql.runSQLOnFiles", "false")
    jvm = gateway.of(spark)
    state = spark._jsparkSession.sessionState()  # noqa: SLF001
    for name in _NO_FUNCTIONS:
        state.functionRegistry().dropFunction(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name))
    tables = state.tableFunctionRegistry()
    own = getattr(getattr(jvm.org.apache.spark.sql.catalyst.analysis, "TableFunctionRegistry$"), "MODULE$").builtin()
    for function in gateway.iterate(tables.listFunction()):
        if not own.functionExists(function):
            tables.dropFunction(function)
