"""Decode the records of one table into typed changes, one row each (architecture section 6, step 3).

A change has the table's columns, ``_seq, _deleted, _source_ts_ms``, ``_unavailable ARRAY<STRING>`` (columns that were
not sent, E4) and ``_reject``: its dead letter, NULL for a change that can be applied. Where keys change it also has
``MOVE_COLUMNS`` (``key_headers.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import position, type_inference
from replicator.debezium.placeholder import Placeholder
from replicator.debezium.schema import Form
from replicator.jvm import expressions
from replicator.transforms import append_only, cells, form_groups
from replicator.transforms.cells import Cells
from replicator.transforms.columns.layout import Layout
from replicator.transforms.dead_letters import ADDRESS, to_dead_letter
from replicator.transforms.keys import key_headers
from replicator.transforms.keys.key_headers import MOVE_COLUMNS
from replicator.transforms.keys.row_keys import CAME_FROM, RowKeys
from replicator.transforms.structs import MemberStruct, Struct

_RECORD_COLUMNS = (*ADDRESS, "op", "_seq")

INPUT_COLUMNS = (*_RECORD_COLUMNS, "source_ts_ms", "key", "value", "form")
"""The columns of records that :func:`decode` reads if no key changes."""


@dataclass(frozen=True)
class DecodeOptions:
    """Optional features that some record of the batch needs; each has a cost and is enabled only where it occurs.

    ``placeholder``: values may be unavailable. ``keyless_deletes``: a delete has its key only in ``before`` (B4).
    ``key_changes``: the changes get MOVE_COLUMNS. ``places``: the changes get at least ``_at``. ``generated``: source
    columns that are unknown where a record lacks them (E8). ``departures``: the changes get ``_at`` and
    ``row_keys.CAME_FROM``. ``many``: the batch is so large that our own JSON function (``structs.MemberStruct``) pays
    off against the start-up cost of Spark's parser per record.
    """

    placeholder: Placeholder | None = None
    keyless_deletes: bool = False
    key_changes: bool = False
    places: bool = False
    generated: tuple[str, ...] = ()
    departures: bool = False
    many: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The additional columns of the changes."""
        placed = MOVE_COLUMNS if self.key_changes else ("_at",) if self.places else ()
        return (*placed, CAME_FROM) if self.departures else placed


def decode(
    records: DataFrame, forms: Sequence[Form], layout: Layout, table: str, needs: DecodeOptions, *, reasons: bool = True
) -> DataFrame:
    """Decode the ordered records of one table, without truncates, into changes.

    Without ``reasons``, a ``_reject`` has no reason and only says that the change may be rejected. If no change has
    one, the result is the same as with reasons, in half the time.
    """
    changes, *more = [
        _decode_form(records.where(F.col("form").isin(*each.ids)), each.form, layout, table, needs, reasons=reasons)
        for each in form_groups.group_forms(forms, layout)
    ]
    for each in more:
        changes = changes.unionByName(each)
    return changes


def unavailable_columns() -> Column:
    """Names of the columns whose value a change does not know; empty if it knows them all."""
    return F.coalesce("_unavailable", F.array().cast("array<string>"))


def decode_before(
    records: DataFrame, forms: Sequence[Form], layout: Layout, table: str, needs: DecodeOptions, *, reasons: bool = True
) -> DataFrame:
    """Decode the ``before`` image of envelopes as if it were the row's new state: the row that a delete removed (E9). A
    flattened delete is that image itself (F3); other flattened records have none.
    """
    turned = [
        form if form.is_flat else replace(form, path=(*form.path[:-1], "before"), fields=form.image_fields)
        for form in forms
    ]
    flat = [form.id for form in forms if form.is_flat]
    as_rows = records.where(~F.col("form").isin(*flat) | (F.col("op") == "d")).withColumn("op", F.lit("u"))
    return decode(
        as_rows, turned, layout, table, DecodeOptions(needs.placeholder, places=needs.places), reasons=reasons
    )


def _decode_form(
    records: DataFrame, form: Form, layout: Layout, table: str, needs: DecodeOptions, *, reasons: bool
) -> DataFrame:
    """Decode one form, in separate projections, since Spark duplicates an expression that is used twice."""
    structs, row = _structs(form, layout, needs), Cells(form, needs.placeholder, reasons)
    if needs.key_changes:
        records = key_headers.with_header_keys(records)
    member_structs = [struct for struct in structs if isinstance(struct, MemberStruct)]
    if member_structs:
        records = records.select("*", *[struct.extract(records) for struct in member_structs])
    parsed = records.select(
        *_RECORD_COLUMNS,
        F.col("source_ts_ms").alias("_source_ts_ms"),
        "key",
        *dict.fromkeys(struct.json for struct in structs if struct.json != "key"),
        *[struct.parsed().alias(struct.name) for struct in structs],
        *[F.col(struct.members).isNotNull().alias(struct.is_extracted) for struct in member_structs],
        *([type_inference.raw_texts(F.col("value"), form.path).alias(cells.RAW)] if cells.raw_columns(form) else []),
        *_optional_columns(form, needs),
        *(["happened"] if form.appended else []),
    )
    # a number is distinguished from a placeholder by its text
    texts = {f"{struct.name}_text": struct.text(whole=needs.placeholder is not None) for struct in structs}
    asked = [struct for struct in structs if reasons or struct.name != cells.ROW]
    bare = {name: column for struct in asked for name, column in struct.unquoted().items()}
    with_texts = parsed.select("*", *[text.alias(name) for name, text in (texts | bare).items() if text is not None])
    decoded = with_texts.select(
        *_RECORD_COLUMNS,
        "_source_ts_ms",
        "key",
        F.col("_row").isNull().alias("_rowless"),
        *[cell.alias(name) for name, cell in {**row.columns(), **_key_columns(form, layout, needs)}.items()],
        *([F.when(F.col("_seq").isNull(), position.is_malformed(F.col("value"))).alias("_placed")] if reasons else []),
        *(["_sent"] if needs.generated else []),
        *(["happened"] if form.appended else []),
        *(key_headers.columns(form, layout) if needs.key_changes else []),
        *([F.struct(*ADDRESS).alias("_at")] if needs.columns else []),
    )
    return (_with_reasons if reasons else _with_doubts)(decoded, row, layout, table, needs)


def _with_reasons(decoded: DataFrame, row: Cells, layout: Layout, table: str, needs: DecodeOptions) -> DataFrame:
    """The changes, each with its dead letter if it cannot be applied."""
    columns, key_problem = _columns(row, layout, needs)
    judged = decoded.select(
        F.struct(*_RECORD_COLUMNS).alias("_record"),
        *columns,
        "_source_ts_ms",
        _unavailable(row, layout, needs).alias("_unavailable"),
        _verdict(row, key_problem, layout.find_misfit(row.form)).alias("_verdict"),
        *_extra_columns(row, layout, needs),
    )
    why = to_dead_letter(
        table, F.col("_verdict.reason"), F.col("_verdict.detail"), F.col("_record._seq"), at="_record."
    )
    return judged.select(
        *map(names.quote_spark, layout.types),
        F.col("_record._seq").alias("_seq"),
        (F.col("_record.op") == "d").alias("_deleted"),
        "_source_ts_ms",
        "_unavailable",
        F.when(F.col("_verdict.reason").isNotNull(), why).alias("_reject"),
        *needs.columns,
    )


def _with_doubts(decoded: DataFrame, row: Cells, layout: Layout, table: str, needs: DecodeOptions) -> DataFrame:
    """The changes, each with a dead letter without a reason if it may be rejected."""
    columns, key_problem = _columns(row, layout, needs)
    nothing = F.lit(None).cast("string")
    return decoded.select(
        *columns,
        "_seq",
        (F.col("op") == "d").alias("_deleted"),
        "_source_ts_ms",
        _unavailable(row, layout, needs).alias("_unavailable"),
        F.when(
            _may_be_rejected(row, key_problem, layout.find_misfit(row.form)),
            to_dead_letter(table, nothing, nothing, F.col("_seq")),
        ).alias("_reject"),
        *_extra_columns(row, layout, needs),
    )


def _extra_columns(row: Cells, layout: Layout, needs: DecodeOptions) -> list[Column]:
    """The additional columns of the changes, evaluated together with the table's columns."""
    found = [F.col(name) for name in needs.columns if name != CAME_FROM]
    if needs.departures:
        values, _ = _values(row, layout, needs)
        found.append(RowKeys(row.form, layout, needs.keyless_deletes).came_from(values).alias(CAME_FROM))
    return found


def _columns(row: Cells, layout: Layout, needs: DecodeOptions) -> tuple[list[Column], Column]:
    """The table's columns, and the problem with the key, if any."""
    values, key_problem = _values(row, layout, needs)
    return [values.get(c, F.lit(None)).cast(kind).alias(c) for c, kind in layout.types.items()], key_problem


def _structs(form: Form, layout: Layout, needs: DecodeOptions) -> list[Struct]:
    found = [Struct("_row", "value", form.path, form.fields)]
    if not form.appended:
        found += RowKeys(form, layout, needs.keyless_deletes).structs()
    if needs.key_changes:
        found += key_headers.structs(form, layout)
    return [MemberStruct.if_supported(struct) for struct in found] if needs.many else found


def _key_columns(form: Form, layout: Layout, needs: DecodeOptions) -> dict[str, Column]:
    """Columns for the parsed key; none for an append-only table, whose key is computed from the row."""
    return {} if form.appended else RowKeys(form, layout, needs.keyless_deletes).columns()


def _optional_columns(form: Form, needs: DecodeOptions) -> list[Column]:
    found: list[Column] = []
    if needs.generated:
        found.append(F.json_object_keys(F.get_json_object("value", ".".join(["$", *form.path]))).alias("_sent"))
    if needs.key_changes:
        found += key_headers.parsed_columns()
    return found


def _values(row: Cells, layout: Layout, needs: DecodeOptions) -> tuple[dict[str, Column], Column]:
    """Values by stored name, and the problem with the key, if any."""
    form = row.form
    values = {home: row.value(i) for i, field in enumerate(form.fields) if (home := layout.home(field)) is not None}
    if form.appended:
        return values | {key: append_only.build_key(row) for key in layout.keys}, append_only.reject_reason()
    keys, problem = RowKeys(form, layout, needs.keyless_deletes).from_row(values)
    return values | keys, problem


def _unavailable(row: Cells, layout: Layout, needs: DecodeOptions) -> Column:
    """Stored names of the columns that were not sent, with all versions of a source column (G3)."""
    unsent = [
        (column, row.is_unsent(i))
        for i, field in enumerate(row.form.fields)
        if row.placeholder is not None and layout.home(field) is not None
        for column in layout.versions(field.name)
    ]
    unsent += [
        (column, ~F.array_contains("_sent", name)) for name in needs.generated for column in layout.versions(name)
    ]
    if not unsent:
        return F.lit(None).cast("array<string>")
    named = [F.when(lacks & (F.col("op") != "d"), F.lit(home)) for home, lacks in unsent]
    return F.array_compact(F.array(*named).cast("array<string>"))


def _verdict(row: Cells, key_problem: Column, misfit: str | None) -> Column:
    """The first problem of a record as STRUCT<reason, detail>; both NULL if there is none. ``misfit`` is a column whose
    change the table does not follow; a delete needs only the key.
    """
    nothing = F.lit(None).cast("string")
    is_row = F.col("op") != "d"

    def because(condition: Column, reason: Column, detail: Column = nothing) -> Column:
        return F.when(condition, expressions.struct({"reason": reason, "detail": detail}))

    problems = [(row.problem(i), F.lit(field.name)) for i, field in enumerate(row.form.fields)]
    return F.coalesce(
        because(key_problem.isNotNull(), key_problem),
        because(is_row & _has_no_row(row.form), F.lit("after_missing")),
        *([because(is_row, F.lit("incompatible_schema"), F.lit(misfit))] if misfit is not None else []),
        *[because(is_row & problem.isNotNull(), problem, column) for problem, column in problems],
        because(F.col("_seq").isNull(), F.when(F.col("_placed"), "position_malformed").otherwise("position_missing")),
        expressions.struct({"reason": nothing, "detail": nothing}),
    )


def _may_be_rejected(row: Cells, key_problem: Column, misfit: str | None) -> Column:
    """Whether :func:`_verdict` may find a problem; NULL counts as false."""
    doubts = [row.doubt(i) for i in range(len(row.form.fields))]
    of_row = expressions.any_of([_has_no_row(row.form), *doubts]) if misfit is None else F.lit(True)
    return key_problem.isNotNull() | ((F.col("op") != "d") & of_row) | F.col("_seq").isNull()


def _has_no_row(form: Form) -> Column:
    return F.col("_rowless") if form.fields else F.lit(True)
