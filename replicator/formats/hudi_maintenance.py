"""Maintenance of a Hudi table by Hudi's own services: compaction of logs, clustering of small files, cleaning."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from replicator import failpoints
from replicator.formats import hudi_options
from replicator.jvm import gateway


def run(spark: SparkSession, location: str, kind: str) -> None:
    """Finish what a killed process left, then compact or cluster, and clean; each is a commit of its own."""
    if kind == hudi_options.MERGE_ON_READ:
        _call(spark, "run_compaction", location, "run")
        _call(spark, "run_compaction", location, "scheduleAndExecute")
    else:
        _call(spark, "run_clustering", location, "execute")
        _call(spark, "run_clustering", location, "scheduleAndExecute")
    failpoints.hit("hudi.serviced")
    client = _client(spark, location)
    try:
        client.clean()
    finally:
        client.close()


def _call(spark: SparkSession, procedure: str, location: str, operation: str) -> None:
    options = ",".join(f"{key}={value}" for key, value in hudi_options.maintenance().items())
    place = location.replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(f"CALL {procedure}(op => '{operation}', path => '{place}', options => '{options}')").collect()


def _client(spark: SparkSession, location: str) -> Any:
    """Hudi's write client for a table: there is no SQL procedure that cleans a table by its path."""
    jvm: Any = gateway.of(spark)
    options = jvm.PythonUtils.toScalaMap(hudi_options.maintenance())
    clients, nothing = jvm.org.apache.hudi.HoodieCLIUtils, jvm.scala.Option.apply(None)
    return clients.createHoodieWriteClient(spark._jsparkSession, location, options, nothing)  # noqa: SLF001
