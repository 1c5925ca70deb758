"""Sessions for users' SQL: it sees only the given tables, and cannot run code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator.jvm import gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# They call arbitrary Java methods, which no query of a lake needs.
_NO_FUNCTIONS = ("reflect", "java_method", "try_reflect")


def restrict(spark: SparkSession) -> None:
    """Disallow paths as tables, and functions that run Java or open what is named in an argument (reliability.md
    section 12). Of the table functions, Spark's own do neither; those of a format do, such as Delta's
    ``table_changes_by_path``.
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
