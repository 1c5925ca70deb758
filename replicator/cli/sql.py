"""``replicator sql``: questions to the lake. Reads only, and knows every silver table and gold model by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from replicator import gateway
from replicator.cli import options
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# They call any Java method: no question to a lake needs that.
_NO_FUNCTIONS = ("reflect", "java_method", "try_reflect")
_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
# A query that writes has one of these in its tree; everything that is no query is one of them at its root.
_NO_QUERIES = (f"{_PLANS}.Command", f"{_PLANS}.ParsedStatement")


def sql(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="One SELECT; a table goes by its last name: orders, fact_orders.")],
    form: Annotated[options.Rows, typer.Option("--format", help="How rows are printed.")] = options.Rows.table,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
) -> None:
    """Ask the lake: live rows of silver (source columns only) and gold models, by name."""
    from replicator import assemble
    from replicator.cli import rows
    from replicator.cli.views import register
    from replicator.lake import Lake
    from replicator.session import session

    settings = options.settings(env, conf, lake)
    spark = session(settings, debug=options.debugging(context)).newSession()
    _close_doors(spark)
    refuse_commands(spark, query)
    known = register(spark, assemble.tables(settings), Lake(settings.lake.root), query)
    rows.write(_answer(spark, query, known), form)


def refuse_commands(spark: SparkSession, query: str) -> None:
    """Raise ConfigError for anything but one query: statements that write, define, or change the session."""
    from py4j.java_gateway import is_instance_of
    from pyspark.errors import ParseException

    session: Any = spark._jsparkSession  # noqa: SLF001 - Spark's own parser, asked before anything runs
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    try:
        plan = session.sessionState().sqlParser().parsePlan(query)
    except ParseException as error:
        raise ConfigError(f"This is not SQL: {_first_line(error)}") from error
    if any(is_instance_of(gateway, node, name) for node in _nodes(plan) for name in _NO_QUERIES):
        raise ConfigError("Only queries are answered here.", mend="Write one SELECT; the lake is never changed by sql.")


def _close_doors(spark: SparkSession) -> None:
    """Paths are no tables here, and no function runs Java (reliability.md section 12)."""
    spark.conf.set("spark.sql.runSQLOnFiles", "false")
    jvm = gateway.of(spark)
    functions = spark._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
    for name in _NO_FUNCTIONS:
        functions.dropFunction(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name))


def _answer(spark: SparkSession, query: str, known: list[str]) -> DataFrame:
    from pyspark.errors import AnalysisException

    try:
        return spark.sql(query)
    except AnalysisException as error:
        missing = error.getErrorClass() == "TABLE_OR_VIEW_NOT_FOUND"
        mend = f"There are: {', '.join(known) if known else 'no tables in this lake yet'}." if missing else None
        raise ConfigError(_first_line(error), mend=mend) from error


def _nodes(plan: Any) -> list[Any]:
    children = plan.children()
    inside = plan.innerChildren()
    below = [children.apply(i) for i in range(children.size())]
    below += [inside.apply(i) for i in range(inside.size())]
    plans = [node for node in below if hasattr(node, "getClass")]
    return [plan, *(node for child in plans for node in _nodes(child))]


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
