"""An object store that the JVM of the tests comes to know while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from replicator.jvm import gateway, sparkconf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replicator.settings import Settings

_CLIENT = "spark.hadoop.fs.s3a."


def known_store(spark: SparkSession, settings: Settings, bucket: str) -> None:
    """Tell the running JVM of a store, by the name of a bucket in it, what a new session of the product would."""
    context: Any = spark.sparkContext
    hadoop = context._jsc.hadoopConfiguration()
    for key, value in sparkconf.session_settings(settings, {}).items():
        if key.startswith(_CLIENT):
            hadoop.set(key.replace(_CLIENT, f"fs.s3a.bucket.{bucket}."), value)
    java = gateway.of(spark)
    # a client is kept for each bucket: one of another test knows a store that is gone
    java.org.apache.hadoop.fs.FileSystem.get(java.java.net.URI(f"s3a://{bucket}"), hadoop).close()
