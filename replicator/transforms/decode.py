"""Records of one table -> typed changes, one row each (architecture section 6, step 3).

A change has the table's columns, ``_seq, _deleted, _source_ts_ms``, ``_unavailable ARRAY<STRING>`` (columns that were
not sent, E4) and ``_reject``: why it is a dead letter, NULL for one that can be applied. Where keys change it also has
``MOVE_COLUMNS`` (``moved_keys.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import infer, position
from replicator.debezium.placeholder import Placeholder
from replicator.debezium.schema import Form
from replicator.jvm import expressions
from replicator.transforms import appended, cells, joined_forms
from replicator.transforms.cells import Cells
from replicator.transforms.columns.layout import Layout
from replicator.transforms.keys import moved_keys
from replicator.transforms.keys.moved_keys import MOVE_COLUMNS
from replicator.transforms.keys.row_keys import FROM, RowKeys
from replicator.transforms.letters import ADDRESS, letter
from replicator.transforms.structs import Struct, Told

_CARRIED = (*ADDRESS, "op", "_seq")

READ = (*_CARRIED, "source_ts_ms", "key", "value", "form")
"""What :func:`decode` reads of records, where no key changes."""


@dataclass(frozen=True)
class Needs:
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
        return (*placed, FROM) if self.departures else placed


def decode(
    records: DataFrame, forms: Sequence[Form], layout: Layout, table: str, needs: Needs, *, reasons: bool = True
) -> DataFrame:
    """Ordered records of one table, truncates left out -> changes. Without ``reasons`` a ``_reject`` has none, and says
    that there may be one: changes without any are what they are with reasons, and took half as long.
    """
    changes, *more = [
        _decode_form(records.where(F.col("form").isin(*each.ids)), each.form, layout, table, needs, reasons=reasons)
        for each in joined_forms.joined(forms, layout)
    ]
    for each in more:
        changes = changes.unionByName(each)
    return changes


def unsent() -> Column:
    """Names of the columns that a change does not know; empty where it knows them all."""
    return F.coalesce("_unavailable", F.array().cast("array<string>"))


def befores(
    records: DataFrame, forms: Sequence[Form], layout: Layout, table: str, needs: Needs, *, reasons: bool = True
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
    return decode(as_rows, turned, layout, table, Needs(needs.placeholder, places=needs.places), reasons=reasons)


def _decode_form(
    records: DataFrame, form: Form, layout: Layout, table: str, needs: Needs, *, reasons: bool
) -> DataFrame:
    """In steps, each a projection of its own, since Spark repeats an expression wherever it is mentioned."""
    structs, row = _structs(form, layout, needs), Cells(form, needs.placeholder, reasons)
    if needs.key_changes:
        records = moved_keys.beside(records)
    told_of = [struct for struct in structs if isinstance(struct, Told)]
    if told_of:
        records = records.select("*", *[struct.tell(records) for struct in told_of])
    parsed = records.select(
        *_CARRIED,
        F.col("source_ts_ms").alias("_source_ts_ms"),
        "key",
        *dict.fromkeys(struct.json for struct in structs if struct.json != "key"),
        *[struct.parsed().alias(struct.name) for struct in structs],
        *[F.col(struct.members).isNotNull().alias(struct.is_told) for struct in told_of],
        *([infer.texts(F.col("value"), form.path).alias(cells.RAW)] if cells.raw_columns(form) else []),
        *_parsed_needs(form, needs),
        *(["happened"] if form.appended else []),
    )
    # numbers are told from a placeholder by their texts
    texts = {f"{struct.name}_text": struct.text(whole=needs.placeholder is not None) for struct in structs}
    asked = [struct for struct in structs if reasons or struct.name != cells.ROW]
    bare = {name: column for struct in asked for name, column in struct.bare().items()}
    told = parsed.select("*", *[text.alias(name) for name, text in (texts | bare).items() if text is not None])
    decoded = told.select(
        *_CARRIED,
        "_source_ts_ms",
        "key",
        F.col("_row").isNull().alias("_rowless"),
        *[cell.alias(name) for name, cell in {**row.columns(), **_key_columns(form, layout, needs)}.items()],
        *([F.when(F.col("_seq").isNull(), position.is_told(F.col("value"))).alias("_placed")] if reasons else []),
        *(["_sent"] if needs.generated else []),
        *(["happened"] if form.appended else []),
        *(moved_keys.columns(form, layout) if needs.key_changes else []),
        *([F.struct(*ADDRESS).alias("_at")] if needs.columns else []),
    )
    return (_explained if reasons else _doubted)(decoded, row, layout, table, needs)


def _explained(decoded: DataFrame, row: Cells, layout: Layout, table: str, needs: Needs) -> DataFrame:
    """The changes, each with the reason why it cannot be applied."""
    columns, key_problem = _columns(row, layout, needs)
    judged = decoded.select(
        F.struct(*_CARRIED).alias("_record"),
        *columns,
        "_source_ts_ms",
        _unavailable(row, layout, needs).alias("_unavailable"),
        _verdict(row, key_problem, layout.misfit(row.form)).alias("_verdict"),
        *_beside(row, layout, needs),
    )
    why = letter(table, F.col("_verdict.reason"), F.col("_verdict.detail"), F.col("_record._seq"), at="_record.")
    return judged.select(
        *map(names.spark, layout.types),
        F.col("_record._seq").alias("_seq"),
        (F.col("_record.op") == "d").alias("_deleted"),
        "_source_ts_ms",
        "_unavailable",
        F.when(F.col("_verdict.reason").isNotNull(), why).alias("_reject"),
        *needs.columns,
    )


def _doubted(decoded: DataFrame, row: Cells, layout: Layout, table: str, needs: Needs) -> DataFrame:
    """The changes, each with a letter without a reason where it may have one."""
    columns, key_problem = _columns(row, layout, needs)
    nothing = F.lit(None).cast("string")
    return decoded.select(
        *columns,
        "_seq",
        (F.col("op") == "d").alias("_deleted"),
        "_source_ts_ms",
        _unavailable(row, layout, needs).alias("_unavailable"),
        F.when(_doubt(row, key_problem, layout.misfit(row.form)), letter(table, nothing, nothing, F.col("_seq"))).alias(
            "_reject"
        ),
        *_beside(row, layout, needs),
    )


def _beside(row: Cells, layout: Layout, needs: Needs) -> list[Column]:
    """What the changes have besides, where their columns are made."""
    found = [F.col(name) for name in needs.columns if name != FROM]
    if needs.departures:
        values, _ = _values(row, layout, needs)
        found.append(RowKeys(row.form, layout, needs.keyless_deletes).came_from(values).alias(FROM))
    return found


def _columns(row: Cells, layout: Layout, needs: Needs) -> tuple[list[Column], Column]:
    """The table's columns, and what is wrong with the key."""
    values, key_problem = _values(row, layout, needs)
    return [values.get(c, F.lit(None)).cast(kind).alias(c) for c, kind in layout.types.items()], key_problem


def _structs(form: Form, layout: Layout, needs: Needs) -> list[Struct]:
    found = [Struct("_row", "value", form.path, form.fields)]
    if not form.appended:
        found += RowKeys(form, layout, needs.keyless_deletes).structs()
    if needs.key_changes:
        found += moved_keys.structs(form, layout)
    return [Told.where_it_can(struct) for struct in found] if needs.many else found


def _key_columns(form: Form, layout: Layout, needs: Needs) -> dict[str, Column]:
    """The key of an append-only table is made of the row."""
    return {} if form.appended else RowKeys(form, layout, needs.keyless_deletes).columns()


def _parsed_needs(form: Form, needs: Needs) -> list[Column]:
    found: list[Column] = []
    if needs.generated:
        found.append(F.json_object_keys(F.get_json_object("value", ".".join(["$", *form.path]))).alias("_sent"))
    if needs.key_changes:
        found += moved_keys.parsed()
    return found


def _values(row: Cells, layout: Layout, needs: Needs) -> tuple[dict[str, Column], Column]:
    """Values by stored name, and what is wrong with the key."""
    form = row.form
    values = {home: row.value(i) for i, field in enumerate(form.fields) if (home := layout.home(field)) is not None}
    if form.appended:
        return values | {key: appended.identity(row) for key in layout.keys}, appended.problem()
    keys, problem = RowKeys(form, layout, needs.keyless_deletes).of_row(values)
    return values | keys, problem


def _unavailable(row: Cells, layout: Layout, needs: Needs) -> Column:
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
        because(is_row & _is_rowless(row.form), F.lit("after_missing")),
        *([because(is_row, F.lit("incompatible_schema"), F.lit(misfit))] if misfit is not None else []),
        *[because(is_row & problem.isNotNull(), problem, column) for problem, column in problems],
        because(F.col("_seq").isNull(), F.when(F.col("_placed"), "position_malformed").otherwise("position_missing")),
        expressions.struct({"reason": nothing, "detail": nothing}),
    )


def _doubt(row: Cells, key_problem: Column, misfit: str | None) -> Column:
    """Whether :func:`_verdict` may have something to say; NULL counts as false."""
    doubts = [row.doubt(i) for i in range(len(row.form.fields))]
    of_row = expressions.any_of([_is_rowless(row.form), *doubts]) if misfit is None else F.lit(True)
    return key_problem.isNotNull() | ((F.col("op") != "d") & of_row) | F.col("_seq").isNull()


def _is_rowless(form: Form) -> Column:
    return F.col("_rowless") if form.fields else F.lit(True)
