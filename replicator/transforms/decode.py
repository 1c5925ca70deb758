"""Records of one table -> typed changes, one row each (architecture section 6, step 3).

A change has the table's columns, ``_seq, _deleted, _source_ts_ms``, ``_unavailable ARRAY<STRING>`` (columns that were
not sent, E4) and ``_reject``: why it is a dead letter, NULL for one that can be applied. Where keys change it also has
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
"""What :func:`decode` reads of records, where no key changes."""


@dataclass(frozen=True)
class DecodeOptions:
    """What some record of the batch needs beyond its columns; each costs, and is looked for only where it occurs.

    ``placeholder``: values may be missing; ``keyless_deletes``: a delete has its key in ``before`` alone (B4);
    ``key_changes``: the changes shall have MOVE_COLUMNS; ``places``: at least ``_at``; ``generated``: source columns
    that are not known where a record lacks them (E8); ``departures``: the changes, with places, shall have
    ``row_keys.FROM``. ``many``: there are so many records that what a parser costs to begin with each is worth a
    function of our own.
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
        """What the changes have besides."""
        placed = MOVE_COLUMNS if self.key_changes else ("_at",) if self.places else ()
        return (*placed, CAME_FROM) if self.departures else placed


def decode(
    records: DataFrame, forms: Sequence[Form], layout: Layout, table: str, needs: DecodeOptions, *, reasons: bool = True
) -> DataFrame:
    """Ordered records of one table, truncates left out -> changes. Without ``reasons`` a ``_reject`` has none, and says
    that there may be one: changes without any are what they are with reasons, and took half as long.
    """
    changes, *more = [
        _decode_form(records.where(F.col("form").isin(*each.ids)), each.form, layout, table, needs, reasons=reasons)
        for each in form_groups.group_forms(forms, layout)
    ]
    for each in more:
        changes = changes.unionByName(each)
    return changes


def unavailable_columns() -> Column:
    """Names of the columns that a change does not know; empty where it knows them all."""
    return F.coalesce("_unavailable", F.array().cast("array<string>"))


def decode_before(
    records: DataFrame, forms: Sequence[Form], layout: Layout, table: str, needs: DecodeOptions, *, reasons: bool = True
) -> DataFrame:
    """Envelopes decoded as if ``before`` were what the row became: the image that a delete took away (E9). A flattened
    delete is that image itself (F3); other flattened records have none.
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
    """In steps, each a projection of its own, since Spark repeats an expression wherever it is mentioned."""
    structs, row = _structs(form, layout, needs), Cells(form, needs.placeholder, reasons)
    if needs.key_changes:
        records = key_headers.with_header_keys(records)
    told_of = [struct for struct in structs if isinstance(struct, MemberStruct)]
    if told_of:
        records = records.select("*", *[struct.tell(records) for struct in told_of])
    parsed = records.select(
        *_RECORD_COLUMNS,
        F.col("source_ts_ms").alias("_source_ts_ms"),
        "key",
        *dict.fromkeys(struct.json for struct in structs if struct.json != "key"),
        *[struct.parsed().alias(struct.name) for struct in structs],
        *[F.col(struct.members).isNotNull().alias(struct.is_told) for struct in told_of],
        *([type_inference.raw_texts(F.col("value"), form.path).alias(cells.RAW)] if cells.raw_columns(form) else []),
        *_optional_columns(form, needs),
        *(["happened"] if form.appended else []),
    )
    # numbers are told from a placeholder by their texts
    texts = {f"{struct.name}_text": struct.text(whole=needs.placeholder is not None) for struct in structs}
    asked = [struct for struct in structs if reasons or struct.name != cells.ROW]
    bare = {name: column for struct in asked for name, column in struct.bare().items()}
    told = parsed.select("*", *[text.alias(name) for name, text in (texts | bare).items() if text is not None])
    decoded = told.select(
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
    """The changes, each with the reason why it cannot be applied."""
    columns, key_problem = _columns(row, layout, needs)
    judged = decoded.select(
        F.struct(*_RECORD_COLUMNS).alias("_record"),
        *columns,
        "_source_ts_ms",
        _unavailable(row, layout, needs).alias("_unavailable"),
        _verdict(row, key_problem, layout.misfit(row.form)).alias("_verdict"),
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
    """The changes, each with a letter without a reason where it may have one."""
    columns, key_problem = _columns(row, layout, needs)
    nothing = F.lit(None).cast("string")
    return decoded.select(
        *columns,
        "_seq",
        (F.col("op") == "d").alias("_deleted"),
        "_source_ts_ms",
        _unavailable(row, layout, needs).alias("_unavailable"),
        F.when(
            _may_be_rejected(row, key_problem, layout.misfit(row.form)),
            to_dead_letter(table, nothing, nothing, F.col("_seq")),
        ).alias("_reject"),
        *_extra_columns(row, layout, needs),
    )


def _extra_columns(row: Cells, layout: Layout, needs: DecodeOptions) -> list[Column]:
    """What the changes have besides, where their columns are made."""
    found = [F.col(name) for name in needs.columns if name != CAME_FROM]
    if needs.departures:
        values, _ = _values(row, layout, needs)
        found.append(RowKeys(row.form, layout, needs.keyless_deletes).came_from(values).alias(CAME_FROM))
    return found


def _columns(row: Cells, layout: Layout, needs: DecodeOptions) -> tuple[list[Column], Column]:
    """The table's columns, and what is wrong with the key."""
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
    """The key of an append-only table is made of the row."""
    return {} if form.appended else RowKeys(form, layout, needs.keyless_deletes).columns()


def _optional_columns(form: Form, needs: DecodeOptions) -> list[Column]:
    found: list[Column] = []
    if needs.generated:
        found.append(F.json_object_keys(F.get_json_object("value", ".".join(["$", *form.path]))).alias("_sent"))
    if needs.key_changes:
        found += key_headers.parsed_columns()
    return found


def _values(row: Cells, layout: Layout, needs: DecodeOptions) -> tuple[dict[str, Column], Column]:
    """Values by stored name, and what is wrong with the key."""
    form = row.form
    values = {home: row.value(i) for i, field in enumerate(form.fields) if (home := layout.home(field)) is not None}
    if form.appended:
        return values | {key: append_only.build_key(row) for key in layout.keys}, append_only.reject_reason()
    keys, problem = RowKeys(form, layout, needs.keyless_deletes).of_row(values)
    return values | keys, problem


def _unavailable(row: Cells, layout: Layout, needs: DecodeOptions) -> Column:
    """Stored names of the columns that were not sent: all of those that have held values of a source's column (G3)."""
    unsent = [
        (column, row.unsent(i))
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
    """The first thing wrong with a record as STRUCT<reason, detail>; both NULL if nothing is. ``misfit`` is a column
    that the table does not follow; a delete needs only the key.
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
    """Whether :func:`_verdict` may have something to say; NULL counts as false."""
    doubts = [row.doubt(i) for i in range(len(row.form.fields))]
    of_row = expressions.any_of([_has_no_row(row.form), *doubts]) if misfit is None else F.lit(True)
    return key_problem.isNotNull() | ((F.col("op") != "d") & of_row) | F.col("_seq").isNull()


def _has_no_row(form: Form) -> Column:
    return F.col("_rowless") if form.fields else F.lit(True)
