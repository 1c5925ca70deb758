"""Test your own models and declarations: rows or captured events in, rows out, without a server or your lake.

This runs the same code as the stages; compare the results with chispa or any other tool for DataFrames
(docs/testing.md).
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator import assemble, lake_stores, names, session, settings
from replicator.errors import BadRecording, ConfigError
from replicator.lake import HISTORY, Lake
from replicator.operate import dead_letters
from replicator.settings import Settings
from replicator.sources import kcat_files
from replicator.spec import Model, SourceSpec
from replicator.spec.rules import Relationship, Rule
from replicator.spelling import suggest
from replicator.stages import bronze, gold, pipeline, tuning
from replicator.stages.models.model_inputs import SOURCE_TIMESTAMP
from replicator.stages.models.model_parents import Parents
from replicator.stages.models.model_rows import rows_of
from replicator.stages.run_report import ReportLine
from replicator.transforms import model as transform
from replicator.transforms.live import select_live

Batch = str | Path | Iterable[Mapping[str, Any]]
"""Records that arrive together: a file of JSON lines as kcat prints them, or mappings with ``topic``, ``key`` and
``payload``, which may be objects. The other fields of such a line (``partition``, ``offset``, ``ts``, ``headers``) are
optional: a record without an offset follows the records of its partition that were given before.
"""


@dataclass(frozen=True)
class Silver:
    """The result of silver for some batches. ``tables``, by ``<database or schema>.<table>``, with the suffix
    ``__history`` for histories, have the rows that a model sees: the live ones under the source's column names, and
    ``_source_ts_ms BIGINT``. ``dead_letters`` has a row per record that could not be applied (``reason``, ``detail``,
    ``table`` ...).
    """

    tables: Mapping[str, DataFrame]
    dead_letters: DataFrame


class Project:
    """A configuration, as selected by ``--conf`` and ``--env``, and a session (``spark``) like that of its models;
    input rows must be created in this session.

    Raises a ConfigError that lists all problems in the files; also if a session without Delta was running before.
    """

    def __init__(self, conf: str | Path = "conf", env: str = "local") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="replicator-testing-", ignore_cleanup_errors=True)
        self._lakes = 0
        self._settings = self._at(settings.load(Path(conf), env))
        self._base = session.session(self._settings)
        self.spark = tuning.session_for_models(self._base, 0)

    def model(self, name: str, /, *, parents: Mapping[str, DataFrame] | None = None, **inputs: DataFrame) -> DataFrame:
        """Return all rows of a gold model, including its unknown member, for the given rows of its inputs, which are
        named by the placeholders of its SQL. A silver input needs only the columns that the SQL names;
        ``_source_ts_ms`` is NULL if left out.

        The rows are checked against the model's key and checks as in a first build: ChecksFailed is raised for a
        violation, and a Python warning issued for a check that only warns. A relationship is checked if the model it
        refers to is an input or among the ``parents``. Raises ConfigError for a missing or unknown input, and for SQL
        that Spark rejects.
        """
        model = self._settings.model(name)
        _refuse_input_mismatch(model, inputs)
        seen = {each: _as_model_input(rows, model.inputs[each]) for each, rows in inputs.items()}
        fresh = transform.with_unknown_member(rows_of(self.spark, model, seen), model.unknown_member)
        known = {model.inputs[each]: rows for each, rows in seen.items()} | dict(parents or {})
        checks = tuple(check for check in model.checks if _is_answerable(check.rule, {*known, name}))
        warned = gold.check_full(replace(model, checks=checks), fresh, None, Parents(known.__getitem__))[1]
        for each in warned:
            warnings.warn(f"{name}: {each}", stacklevel=2)
        return _without_metadata(fresh)

    def silver(self, source: str, *batches: Batch) -> Silver:
        """Return what silver makes of records of a source, batch by batch, in an initially empty lake, with the
        columns, keys and transforms declared in the source's file.

        Raises ConfigError for an unknown source and for a record of another source, BadRecording for an invalid record,
        and the error of a table that stops.
        """
        spec, self._lakes = self._settings.source(source), self._lakes + 1
        run_settings = self._at(self._settings, f"lake-{self._lakes}").with_formats_of(spec)
        for file in _files(Path(self._folder.name, f"records-{self._lakes}"), batches):
            self._take(run_settings, file, spec)
        [refined] = [
            each for each in assemble.refinements(self._base, run_settings, spec) if each.source.name == source
        ]
        return Silver(dict(self._tables(run_settings, source)), dead_letters.load_letters(self.spark, refined))

    def _at(self, base: Settings, lake: str = "lake") -> Settings:
        """The same settings with a lake of its own, on the local disk and without a cluster."""
        root, master = str(Path(self._folder.name, lake)), base.spark.get("spark.master", "local[*]")
        spark = {**base.spark, "spark.master": master if master.startswith("local[") else "local[*]"}
        return base.model_copy(update={"lake": base.lake.model_copy(update={"root": root}), "s3": None, "spark": spark})

    def _take(self, at: Settings, file: str, spec: SourceSpec) -> None:
        made, shares = assemble.recording_pipeline(self._base, at, assemble.open_recording(self._base, [file]), spec)
        for ingestion, topics in shares.items():
            if ingestion.source != spec.name:
                raise ConfigError(f"topic {topics[0]} is not of source {spec.name}, whose topics begin with its name")
            bronze.ingest_files(self._base, ingestion, topics)
        pipeline.run_once(self._base, made, ("silver",), _raise_error)

    def _tables(self, at: Settings, source: str) -> Iterator[tuple[str, DataFrame]]:
        lake, silver = Lake(at.lake.root), lake_stores.table_format(at)
        for root, suffix in ((lake.silver_root(source), ""), (lake.history_root(source), HISTORY)):
            for folder in silver.tables(self._base, root):
                name = f"{names.decode_table(folder)}{suffix}"
                yield (
                    name,
                    _without_metadata(
                        select_live(silver.read(self.spark, lake.source_table(source, name)), SOURCE_TIMESTAMP)
                    ),
                )


def _refuse_input_mismatch(model: Model, inputs: Mapping[str, DataFrame]) -> None:
    for name in inputs.keys() - model.inputs.keys():
        raise ConfigError(f"model {model.name} has no input {name!r}{suggest(name, model.inputs)}")
    missing = ", ".join(model.inputs.keys() - inputs.keys())
    if missing:
        raise ConfigError(
            f"model {model.name} reads {missing}, for which no rows are given", fix="An empty frame is enough."
        )


def _as_model_input(rows: DataFrame, given: str) -> DataFrame:
    """Rows as a model sees its input: for a silver input with its one metadata column."""
    return (
        rows.withColumn(SOURCE_TIMESTAMP, F.lit(None).cast("bigint"))
        if "/" in given and SOURCE_TIMESTAMP not in rows.columns
        else rows
    )


def _without_metadata(rows: DataFrame) -> DataFrame:
    """The rows without column metadata, which a test's own frame lacks: the result of an expression has none."""
    return rows.select(*[F.coalesce(names.quote_spark(name)).alias(name) for name in rows.columns])


def _is_answerable(rule: Rule, known: Iterable[str]) -> bool:
    return not isinstance(rule, Relationship) or rule.to in known


def _files(folder: Path, batches: Iterable[Batch]) -> Iterator[str]:
    """Yield a file for each batch, in their order."""
    ends: dict[tuple[str, int], int] = defaultdict(int)
    folder.mkdir()
    for number, batch in enumerate(batches):
        if isinstance(batch, str | Path):
            file = Path(batch)
            for record in kcat_files.read_records(file):
                _advance_end(ends, (record.topic, record.partition), record.offset)
        else:
            file = folder / f"{number}.jsonl"
            file.write_text("".join(f"{json.dumps(_line(each, ends))}\n" for each in batch), encoding="utf-8")
        yield str(file.absolute())


def _advance_end(ends: dict[tuple[str, int], int], place: tuple[str, int], offset: int) -> None:
    ends[place] = max(ends[place], offset + 1)


def _line(record: Mapping[str, Any], ends: dict[tuple[str, int], int]) -> dict[str, Any]:
    """A record with the fields of a line of kcat."""
    missing = [part for part in ("topic", "key", "payload") if part not in record]
    if missing:
        raise BadRecording(f"a record lacks {', '.join(missing)}", fix="None stands for Kafka's null.")
    place = str(record["topic"]), int(record.get("partition", 0))
    offset = record.get("offset", ends[place])
    _advance_end(ends, place, offset)
    texts = {part: _text(record[part]) for part in ("key", "payload")}
    return {"tstype": "create", "ts": 0, "headers": [], "partition": 0, **record, "offset": offset, **texts}


def _text(part: Any) -> str | None:
    return part if part is None or isinstance(part, str) else json.dumps(part)


def _raise_error(line: ReportLine) -> None:
    if line.error is not None:
        raise line.error
