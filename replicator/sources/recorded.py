"""Records from files, as ``kcat -C -J`` prints them: JSON lines with topic, partition, offset, tstype, ts, headers, key
and payload (null = a real Kafka null: a line without the member is not a record).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.debezium.classification import is_one_object
from replicator.errors import BadRecording
from replicator.jvm import causes, java_udfs
from replicator.jvm.failures import FAILURES
from replicator.protocols import StreamState
from replicator.sources import kcat_files

_RECORD = (
    "topic STRING, partition INT, offset BIGINT, ts BIGINT, headers ARRAY<STRING>, key STRING, payload STRING, "
    "_broken STRING"
)


_IS_TEXT = "is_text"
"""Whether a line's bytes are UTF-8."""

_AS_JSON = r'"(?:key|payload)"\s*:\s*[^"n\s]'
"""Matches a line in which a part is neither a text nor null."""

_BOM = "^\ufeff"
"""The byte order mark with which some editors begin a file in UTF-8; no line of JSON begins with it."""


@dataclass(frozen=True)
class RecordedSource:
    """Some files, plain or compressed (``.gz``); bounded."""

    files: Sequence[str]

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the columns of ``Source.read``. Raises BadRecording, naming the first file with a line that is not a
        record.
        """
        written = self._lines(spark)
        record = F.from_json("value", _RECORD, {"columnNameOfCorruptRecord": "_broken"})
        parsed = written.select(F.input_file_name().alias("file"), "value", _IS_TEXT, record.alias("r"))
        key, payload = _texts(is_json=self._check_lines(parsed))
        pair = F.transform(
            F.sequence(F.lit(0), F.floor(F.size("r.headers") / 2).cast("int") - 1),
            lambda i: F.struct(
                F.element_at("r.headers", i * 2 + 1).alias("key"),
                F.element_at("r.headers", i * 2 + 2).cast("binary").alias("value"),
            ),
        )
        none = F.array().cast("array<struct<key:string,value:binary>>")
        return parsed.select(
            "r.topic",
            "r.partition",
            "r.offset",
            F.timestamp_millis("r.ts").alias("timestamp"),
            key.cast("binary").alias("key"),
            payload.cast("binary").alias("value"),
            F.when(F.size("r.headers") >= 2, pair).otherwise(none).alias("headers"),
        )

    def topic_ids(self, spark: SparkSession) -> Mapping[str, str]:  # noqa: ARG002
        """Empty: files contain no topic ids."""
        return {}

    def end_offsets(self, spark: SparkSession) -> Mapping[tuple[str, int], int]:
        """Return the offset after the last record in the files, per (topic, partition)."""
        ends = self.read(spark).groupBy("topic", "partition").agg((F.max("offset") + 1).alias("end"))
        return {(row["topic"], row["partition"]): row["end"] for row in ends.collect()}

    def first_offsets(self, spark: SparkSession) -> Mapping[tuple[str, int], int]:
        """Return the offset of the first record in the files, per (topic, partition)."""
        starts = self.read(spark).groupBy("topic", "partition").agg(F.min("offset").alias("start"))
        return {(row["topic"], row["partition"]): row["start"] for row in starts.collect()}

    def resume(self, spark: SparkSession, checkpoint: str, stream_state: StreamState) -> None:
        """Does nothing: files are always read completely."""

    def refuse_lost(self, spark: SparkSession, checkpoint: str, stream_state: StreamState) -> None:
        """Does nothing: files lose no records."""

    def _lines(self, spark: SparkSession) -> DataFrame:
        kcat_files.refuse_unreadable_names(self.files)
        is_text = java_udfs.create(spark, "replicator.stages.Utf8", "boolean")
        try:
            written = spark.read.text([_literal(file) for file in self.files])
            # evaluated first: removing the mark replaces each invalid byte by a character
            written = written.withColumn(_IS_TEXT, is_text(F.col("value").cast("binary")))
            return written.withColumn("value", F.regexp_replace("value", _BOM, "")).where(F.trim("value") != "")
        except AnalysisException as error:
            missing = [file for file in self.files if not Path(file).exists()] or self.files
            raise BadRecording(
                "a recorded file cannot be read", where=", ".join(missing), fix="Check the path."
            ) from error
        except FAILURES as error:  # one is raised by Spark 3.5, the other by 4.1
            folders = [file for file in self.files if Path(file).is_dir()]
            if not folders:
                raise
            raise BadRecording(
                "a folder cannot be read as one recording", where=", ".join(folders), fix="Name the files."
            ) from error

    def _check_lines(self, parsed: DataFrame) -> bool:
        """Whether some line has a part that is written as JSON. Raises BadRecording for lines that are not records."""
        broken, is_json = F.count_if(_is_broken()).alias("broken"), F.max(_is_json()).alias("is_json")
        try:
            files = parsed.groupBy("file").agg(broken, is_json).collect()
        except Py4JJavaError as error:
            summary = causes.summarize(error)
            if "java.io." not in summary or causes.is_infrastructure(error):
                raise
            raise BadRecording(
                f"a recorded file cannot be read: {summary}",
                where=", ".join(self.files),
                fix="Check that it is complete and that its extension (.gz) matches its content.",
            ) from error
        first = min((each for each in files if each["broken"]), key=itemgetter("file"), default=None)
        if first is not None:
            where, fix = _locate_first_broken(first["file"])
            wrong = (
                "1 line is not a Kafka record"
                if first["broken"] == 1
                else f"{first['broken']} lines are not Kafka records"
            )
            raise BadRecording(wrong, where=where, fix=fix)
        return any(each["is_json"] for each in files)


def _is_json() -> Column:
    """Whether a part of a line is written as JSON."""
    return F.col("value").rlike(_AS_JSON)


def _texts(*, is_json: bool) -> tuple[Column, Column]:
    """Key and payload. A part written as JSON keeps its original text, since `from_json` rewrites numbers (types.md
    Y1); Python is used only if there is such a line.
    """
    if not is_json:
        return F.col("r.key"), F.col("r.payload")
    own = F.udf(kcat_files.raw_json_parts, "struct<key: string, payload: string>", useArrow=False)
    parts = own(F.when(_is_json(), F.col("value")))
    return F.coalesce(parts["key"], "r.key"), F.coalesce(parts["payload"], "r.payload")


def _literal(file: str) -> str:
    """A path for Spark: ``*`` or ``[`` in the name of an existing file are not a pattern."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", file) if Path(file).exists() else file


def _locate_first_broken(uri: str) -> tuple[str, str]:
    """``FILE:LINE`` of the first line that is not a record, and how to fix it, for a file on this machine; else the
    file alone.
    """
    url = urlsplit(uri)
    if url.scheme != "file":
        return uri, kcat_files.EXPECTED
    path = Path(unquote(url.path))
    try:
        for _ in kcat_files.read_records(path):
            pass
    except BadRecording as error:
        return error.where or str(path), error.fix or kcat_files.EXPECTED
    return str(path), kcat_files.EXPECTED


def _is_broken() -> Column:
    """Whether the line is not a record, or not a single one."""
    record = F.col("r")
    placed = record["topic"].isNotNull() & record["partition"].isNotNull() & record["offset"].isNotNull()
    members = F.json_object_keys("value")
    key, payload = (record[part].isNotNull() | F.array_contains(members, part) for part in ("key", "payload"))
    return record["_broken"].isNotNull() | ~(F.col(_IS_TEXT) & placed & is_one_object(F.col("value")) & key & payload)
