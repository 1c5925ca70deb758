"""The schema of a batch against the schema of its table: no Spark needed."""

from __future__ import annotations

import functools
import itertools

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from replicator.debezium.logical_types import Field
from replicator.debezium.schema import Form
from replicator.debezium.type_parser import parse_type
from replicator.errors import ConfigError, SchemaRefused
from replicator.spec import Evolution
from replicator.stages.tick import forms as forms_of
from replicator.transforms import evolve
from replicator.transforms.columns import encodings, layout, type_versions
from replicator.transforms.columns.policy import ColumnChange, Policy

SYSTEM = {"_seq": "string", "_deleted": "boolean", "_column_seq": "map<string,string>", "_source_ts_ms": "bigint"}
FREEZE, FAIL = Policy("freeze"), Policy("fail")


def form(columns: dict[str, str], keys: tuple[str, ...] = ("id",), number: int = 1, raw: tuple[str, ...] = ()) -> Form:
    """A form whose row has these columns and whose Kafka key has those of them."""
    fields = tuple(Field(name, parse_type(kind)) for name, kind in columns.items())
    key_fields = tuple(field for field in fields if field.name in keys)
    return Form(number, ("after",), (), fields, key_fields, raw=frozenset(raw))


def with_v(kind: str, number: int = 1) -> Form:
    """A form of the table (id, v)."""
    return form({"id": "int", "v": kind}, number=number)


def columns(found: evolve.Plan) -> dict[str, str]:
    """The types of a plan's columns."""
    return dict(found.layout.types)


def test_a_new_table_gets_the_columns_of_its_first_batch() -> None:
    """Types as Spark spells them, the key from the records; nothing has to evolve."""
    found = evolve.plan("t", [form({"id": "int", "price": "decimal(10,2)", "day": "date"})], None)
    assert columns(found) == {"id": "int", "price": "decimal(10,2)", "day": "date"}
    assert found.layout.keys == ("id",)
    assert not found.evolution
    assert found.changes == ()


def test_a_new_column_is_added_behind_the_others() -> None:
    """Silver evolves by union, and system columns are no columns of the source (G3)."""
    stored = {"id": "int", "old": "string"} | SYSTEM
    found = evolve.plan("t", [form({"id": "int", "note": "string"})], stored, ("id",))
    assert list(found.layout.types) == ["id", "old", "note"]
    assert found.evolution == Evolution(added=(("note", "string"),))
    assert found.changes == (ColumnChange("added", "note", "", "string"),)


@pytest.mark.parametrize(
    ("stored", "incoming", "wide"),
    [
        ("smallint", "int", "int"),
        ("int", "bigint", "bigint"),
        ("float", "double", "double"),
        ("decimal(10,2)", "decimal(14,4)", "decimal(14,4)"),
        ("decimal(10,2)", "decimal(10,4)", "decimal(12,4)"),
        ("int", "decimal(10,2)", "decimal(12,2)"),
        ("decimal(5,0)", "int", "decimal(10,0)"),
    ],
)
@pytest.mark.parametrize("policy", [Policy(), FAIL])
def test_a_type_widens(stored: str, incoming: str, wide: str, policy: Policy) -> None:
    """Types.md section 8: the wider type holds every value of both, and no policy but freeze minds."""
    found = evolve.plan("t", [with_v(incoming)], {"id": "int", "v": stored} | SYSTEM, policy=policy)
    assert columns(found)["v"] == wide
    assert found.evolution == Evolution(widened=(("v", wide),))
    assert found.changes == (ColumnChange("widened", "v", stored, wide),)


@pytest.mark.parametrize("policy", [Policy(), FAIL, FREEZE])
def test_a_narrower_batch_leaves_the_table_alone(policy: Policy) -> None:
    """A late record with the older, narrower type fits where it is; so does a column that the source narrowed."""
    stored = {"id": "int", "v": "decimal(14,4)"} | SYSTEM
    found = evolve.plan("t", [with_v("decimal(10,2)")], stored, policy=policy)
    assert columns(found)["v"] == "decimal(14,4)"
    assert not found.evolution
    assert found.layout.find_misfit(with_v("decimal(10,2)")) is None


def test_two_forms_of_one_batch_meet_in_the_wider_type() -> None:
    """A change of schema in the middle of a batch (G2)."""
    forms = [with_v("decimal(10,2)"), form({"id": "int", "v": "decimal(14,4)", "w": "int"})]
    for order in (forms, forms[::-1]):
        assert columns(evolve.plan("t", order, None)) == {"id": "int", "v": "decimal(14,4)", "w": "int"}


UNRELATED = [("int", "string"), ("string", "int"), ("date", "timestamp"), ("double", "int"), ("string", "array<int>")]


@pytest.mark.parametrize(("stored", "incoming"), UNRELATED)
def test_a_type_that_no_widening_reaches_gets_a_column_of_its_own(stored: str, incoming: str) -> None:
    """G3, evolve: the old column keeps its values, and its name."""
    before, after = (evolve.plan("t", [with_v(kind)], None).layout.types["v"] for kind in (stored, incoming))
    found = evolve.plan("t", [with_v(incoming)], {"id": "int", "v": before} | SYSTEM)
    assert columns(found) == {"id": "int", "v": before, "v__v2": after}
    assert found.evolution == Evolution(added=(("v__v2", after),))
    assert found.changes == (ColumnChange("versioned", "v", before, after),)
    assert found.layout.home(with_v(incoming).fields[1]) == "v__v2"
    assert found.layout.home(with_v(stored).fields[1]) == "v"
    assert any("v__v2" in warning for warning in found.warnings)


@pytest.mark.parametrize(("stored", "incoming"), UNRELATED)
def test_under_fail_it_stops_the_table_and_names_the_change(stored: str, incoming: str) -> None:
    """G3, fail: never a silent conversion; the advice says how to let it pass."""
    before = evolve.plan("t", [with_v(stored)], None).layout.types["v"]
    found = evolve.plan("t", [with_v(incoming)], {"id": "int", "v": before} | SYSTEM, policy=FAIL)
    assert not found.evolution
    with pytest.raises(SchemaRefused, match=r"column v changed from .* which is not a widening") as caught:
        evolve.refuse_withheld("t", found, FAIL)
    assert "--approve t" in str(caught.value.fix)


@pytest.mark.parametrize(("stored", "incoming"), [*UNRELATED, ("int", "bigint"), ("decimal(10,2)", "decimal(10,4)")])
def test_under_freeze_records_of_such_a_type_do_not_fit(stored: str, incoming: str) -> None:
    """G3, freeze: the table stays as it is, the column is named, and older records go on."""
    before = evolve.plan("t", [with_v(stored)], None).layout.types["v"]
    found = evolve.plan("t", [with_v(incoming), with_v(stored)], {"id": "int", "v": before} | SYSTEM, policy=FREEZE)
    evolve.refuse_withheld("t", found, FREEZE)
    assert columns(found) == {"id": "int", "v": before}
    assert not found.evolution
    assert found.layout.find_misfit(with_v(incoming)) == "v"
    assert found.layout.find_misfit(with_v(stored)) is None


def test_under_freeze_a_new_column_stays_in_bronze() -> None:
    """The records fit without it; the change is told."""
    stored = {"id": "int", "v": "int"} | SYSTEM
    wider = form({"id": "int", "v": "int", "note": "string"})
    found = evolve.plan("t", [wider], stored, policy=FREEZE)
    assert columns(found) == {"id": "int", "v": "int"}
    assert found.withheld == (ColumnChange("added", "note", "", "string"),)
    assert found.layout.find_misfit(wider) is None
    assert found.layout.home(wider.fields[2]) is None


def test_under_freeze_a_new_table_is_made_as_its_oldest_records_are() -> None:
    """Whatever else is in the batch: in order, one batch gives what several give. A delete has no columns to show."""
    delete = form({}, number=1)
    old, new = with_v("int", 2), form({"id": "int", "v": "string", "w": "int"}, number=3)
    found = evolve.plan("t", [delete, old, new], None, declared=("id",), policy=FREEZE)
    assert columns(found) == {"id": "int", "v": "int"}
    assert found.layout.find_misfit(new) == "v"


@pytest.mark.parametrize("policy", ["fail", "freeze"])
def test_an_approved_change_is_made_and_no_other(policy: str) -> None:
    """An approval is for exactly one change."""
    stored = {"id": "int", "v": "int", "w": "int"} | SYSTEM
    approved = Policy(policy, frozenset({ColumnChange("versioned", "v", "int", "string")}))
    found = evolve.plan("t", [with_v("string")], stored, policy=approved)
    evolve.refuse_withheld("t", found, approved)
    assert found.evolution == Evolution(added=(("v__v2", "string"),))
    other = evolve.plan("t", [with_v("date")], stored, policy=approved)
    assert other.withheld == (ColumnChange("versioned", "v", "int", "date"),)


def test_records_without_types_never_make_a_version() -> None:
    """A3: what a schema-less record means by a text is unknown where the column is a date; nobody guesses."""
    untyped = form({"id": "int", "v": "string"}, raw=("v",))
    found = evolve.plan("t", [untyped], {"id": "int", "v": "date"} | SYSTEM)
    assert not found.evolution
    with pytest.raises(SchemaRefused, match="column v is date in the table and has no type") as caught:
        evolve.refuse_withheld("t", found, Policy())
    assert "conf/sources, or with --declare next to --lake" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("sent", "kind", "meant"),
    [
        (["time"], "bigint", "time"),
        (["nano_time"], "bigint", "nano_time"),
        (["bigint unsigned"], "decimal(20,0)", "bigint unsigned"),
        (["bits(8)"], "bigint", "bits(8)"),
        (["micro_timestamp"], "timestamp_ntz", "micro_timestamp"),
        (["decimal_connect(10,2)", "decimal_connect(12,2)"], "decimal(12,2)", "decimal_connect(12,2)"),
        (["int", "bigint", "smallint"], "bigint", "bigint"),
        (["float", "double"], "double", "double"),
        (["json", "uuid", "string"], "string", "string"),
        (["decimal(65,30)"], "string", "decimal(65,30)"),
        (["array<time>"], "array<bigint>", "array<time>"),
        (["time", "micro_time"], "bigint", None),
        (["bigint", "time"], "bigint", None),
        (["decimal(10,2)", "decimal(10,4)"], "decimal(12,4)", None),
        (["int", "decimal(12,0)"], "decimal(12,0)", None),
        (["decimal(10,2)", "decimal_string(10,2)"], "decimal(10,2)", None),
        (["json", "decimal(65,30)"], "string", None),
        (["int"], "bigint", None),
    ],
)
def test_a_column_is_read_without_a_schema_as_records_with_one_wrote_it(
    sent: list[str], kind: str, meant: str | None
) -> None:
    """A3: a BIGINT may be a time in milliseconds or in nanoseconds, a DECIMAL's bytes lack its scale; what was written
    in several ways is not read, in whichever order they came.
    """
    for order in (sent, sent[::-1]):
        told = [encodings.from_forms([with_v(each)]) for each in order]
        [found] = {form for place, form in functools.reduce(encodings.combine, told).items() if place[0] == "v"}
        assert encodings.resolve_type(found, kind) == (None if meant is None else parse_type(meant))


def test_how_a_column_is_written_is_told_in_any_case_of_its_name() -> None:
    """A3, G4: what is told of another spelling is told of the same column, of a table and of one that is yet to be."""
    stored = StructType([StructField("At", LongType()), StructField("_seq", StringType())])
    told = [
        encodings.from_forms([form({name: kind})])
        for name, kind in (("At", "time"), ("AT", "time"), ("at", "micro_time"))
    ]
    same, several = encodings.combine(*told[:2]), functools.reduce(encodings.combine, told)
    assert forms_of.known_types(stored, told[1]) == forms_of.known_types(stored, same) == {"At": parse_type("time")}
    assert forms_of.known_types(stored, several) == {}
    assert encodings.unify_case(same) == told[0]
    assert set(encodings.unify_case(several).values()) == {""}


def test_a_type_that_nobody_noted_is_read_only_where_it_tells_all() -> None:
    """A3: of a table from before that was noted, numbers of 64 bits and decimals may be anything."""
    kinds = ("int", "double", "boolean", "date", "binary", "string", "bigint", "decimal(20,0)", "array<bigint>")
    known = {kind: encodings.resolve_type(None, kind) for kind in (*kinds, "timestamp_ntz", "struct<a:int>")}
    assert {kind for kind, logical in known.items() if logical is not None} == set(kinds[:6])


def test_a_key_without_a_type_is_refused_with_the_same_advice() -> None:
    """A3: its type is missing, the key is what it was."""
    untyped = form({"id": "string"}, raw=("id",))
    with pytest.raises(SchemaRefused, match="column id is bigint in the table and has no type") as caught:
        evolve.plan("t", [untyped], {"id": "bigint", "v": "int"} | SYSTEM, ("id",))
    assert "Declare" in str(caught.value.fix)


def test_numbers_that_no_decimal_holds_stop_the_table() -> None:
    """Both are exact numbers, so there is no second column for either."""
    found = evolve.plan("t", [with_v("decimal(38,10)")], {"id": "int", "v": "decimal(38,0)"} | SYSTEM)
    with pytest.raises(SchemaRefused, match="and no type holds both"):
        evolve.refuse_withheld("t", found, Policy())


def test_what_came_and_what_went_may_be_one_column_with_a_new_name() -> None:
    """C-4: DDL is not in the stream; a rename looks like a drop and an add, and is told, in a first batch too."""
    stored = {"id": "int", "v": "int"} | SYSTEM
    both = [with_v("int"), form({"id": "int", "amount": "int"}, number=2)]
    assert evolve.plan("t", both, None).warnings == evolve.plan("t", both, stored, ("id",)).warnings
    assert len(evolve.plan("t", both, None).warnings) == 1
    assert evolve.plan("t", [with_v("int"), form({"id": "int", "V": "int", "w": "int"}, number=2)], None).warnings == []
    found = evolve.plan("t", [form({"id": "int", "amount": "int"})], stored, ("id",))
    assert columns(found) == {"id": "int", "v": "int", "amount": "int"}
    assert [warning for warning in found.warnings if "amount" in warning and "v" in warning]
    assert evolve.plan("t", [form({"id": "int", "v": "int", "w": "int"})], stored, ("id",)).warnings == []


def test_an_older_type_that_comes_late_takes_the_plain_name() -> None:
    """G2: the order of schemas is the order of `seq`, not of arrival."""
    stored = {"id": "int", "v": "string"} | SYSTEM
    since = {("v", "number"): "10", ("v", "STRING"): "20"}
    found = evolve.plan("t", [with_v("int")], stored, since=since)
    assert columns(found) == {"id": "int", "v": "int", "v__v2": "string"}
    assert found.evolution == Evolution(added=(("v", "int"),), moved=(("v", "v__v2", "string"),))
    assert ColumnChange("moved", "v", "v", "v__v2") in found.changes
    frozen = evolve.plan("t", [with_v("int")], stored, since=since, policy=FREEZE)
    assert columns(frozen) == {"id": "int", "v": "string"}


KINDS = ("smallint", "int", "string", "decimal(10,2)", "date")


@pytest.mark.parametrize("kinds", [*itertools.permutations(KINDS, 3), KINDS[1:]])
def test_a_table_ends_with_the_same_columns_however_its_records_came(kinds: tuple[str, ...]) -> None:
    """P1, P2: every order of arrival, each cut into batches in every way; the n-th record has the n-th type."""
    records = [(f"{at:02}", with_v(kind, at)) for at, kind in enumerate(kinds)]
    ends = {
        tuple(sorted(_replayed(order, cuts).items()))
        for order in itertools.permutations(records)
        for cuts in itertools.product((False, True), repeat=len(records) - 1)
    }
    assert len(ends) == 1


def _replayed(order: tuple[tuple[str, Form], ...], cuts: tuple[bool, ...]) -> dict[str, str]:
    """The columns in the end; in between, every value must keep the column of its type."""
    stored: dict[str, str] | None = None
    since: dict[tuple[str, str], str] = {}
    batch: list[tuple[str, Form]] = []
    for record, cut in zip(order, (*cuts, True), strict=True):
        batch.append(record)
        if not cut:
            continue
        forms = [each for _, each in sorted(batch, key=lambda pair: pair[0])]
        for place, at in type_versions.first_seen_types(
            forms, {each.id: seq for seq, each in batch}, layout.stored_name
        ).items():
            since[place] = min(at, since.get(place, at))
        found = evolve.plan("t", forms, stored, since=since)
        _consistent(found.evolution, stored, columns(found))
        stored, batch = columns(found), []
    assert stored is not None
    return stored


def _consistent(evolution: Evolution, stored: dict[str, str] | None, wanted: dict[str, str]) -> None:
    """Carrying out the evolution gives the columns of the layout."""
    if stored is not None:
        moved = {to: kind for _, to, kind in evolution.moved}
        assert stored | dict(evolution.added) | dict(evolution.widened) | moved == wanted
        assert {layout.type_family(kind) for kind in stored.values()} <= {
            layout.type_family(kind) for kind in wanted.values()
        }


def test_another_key_stops_the_table() -> None:
    """Rows of two keys cannot be told apart in one table, be it more, fewer or other columns."""
    stored = {"id": "int", "other": "int"} | SYSTEM
    for policy in (Policy(), FAIL, FREEZE):
        for new in (("other",), ("id", "other")):
            with pytest.raises(SchemaRefused, match=f"the key was id and is now {','.join(new)}") as caught:
                evolve.plan("t", [form({"id": "int", "other": "int"}, keys=new)], stored, ("id",), policy=policy)
            assert "`replicator rebuild t`" in str(caught.value.fix)
            assert "beyond the records' own key" in str(caught.value.fix)
    with pytest.raises(SchemaRefused, match="the key was id,other and is now id"):
        evolve.plan("t", [form({"id": "int", "other": "int"})], stored, ("id", "other"))


def test_a_key_of_another_type_stops_the_table() -> None:
    """C6: keys are equal when their values are; a number never equals a text, nor a FLOAT surely a DOUBLE."""
    for before, after in (("int", "string"), ("string", "bigint"), ("float", "double"), ("date", "timestamp")):
        with pytest.raises(SchemaRefused, match=r"the key changed: column id .* from .* to "):
            evolve.plan("t", [form({"id": after})], {"id": before} | SYSTEM, ("id",))
    with pytest.raises(SchemaRefused, match="the key changed") as caught:
        evolve.plan("t", [form({"id": "bigint"})], {"id": "int"} | SYSTEM, ("id",), policy=FREEZE)
    assert "`schema_changes: evolve`" in str(caught.value.fix)  # it only has to be let grow


@pytest.mark.parametrize(("stored", "way"), [(SYSTEM | {"id": "int"}, "rebuild t"), (None, "run")])
def test_a_key_of_another_type_is_fixed_as_another_key_is(stored: dict[str, str] | None, way: str) -> None:
    """A rebuild says what differs and leaves readers their table; a folder that is taken away does neither."""
    forms = [form({"id": "int", "c": "string"}), form({"id": "string", "c": "string"}, number=2)]
    with pytest.raises(SchemaRefused, match="the key changed") as caught:
        evolve.plan("t", forms, stored, ("id",))
    assert f"then `replicator {way}` builds it" in str(caught.value.fix)
    evolve.plan("t", forms, None, declared=("c",))


def test_a_key_of_whole_numbers_may_grow() -> None:
    """C6: 7 is 7 in a wider column, so old rows are found."""
    found = evolve.plan("t", [form({"id": "bigint"})], {"id": "int", "v": "int"} | SYSTEM, ("id",))
    assert found.evolution == Evolution(widened=(("id", "bigint"),))


def test_two_keys_in_one_batch_stop_the_table() -> None:
    """There is no order that makes both right."""
    with pytest.raises(SchemaRefused, match="the key changed"):
        evolve.plan("t", [form({"id": "int"}), form({"id": "int", "k": "int"}, keys=("k",))], None)


def test_a_declared_key_wins_over_that_of_the_records() -> None:
    """A table without a Kafka key can be declared one, and one whose Kafka key changes can keep its own."""
    for keys in ((), ("v",)):
        found = evolve.plan("t", [form({"id": "int", "v": "int"}, keys=keys)], None, declared=("id",))
        assert found.layout.keys == ("id",)
        assert found.layout.keys_from_row


def test_declaring_another_key_than_the_table_has_stops_it() -> None:
    """Its rows are one per old key."""
    stored = {"id": "int", "v": "int"} | SYSTEM
    with pytest.raises(SchemaRefused, match="the key was id and is now v"):
        evolve.plan("t", [form({"id": "int", "v": "int"})], stored, ("id",), declared=("v",))


def test_columns_of_a_record_that_differ_by_case_only_are_refused() -> None:
    """No table format keeps the two apart (G4)."""
    for stored in (None, {"id": "int", "v": "int"} | SYSTEM):
        with pytest.raises(ConfigError):
            evolve.plan("t", [form({"id": "int", "V": "int", "v": "int"})], stored)


def test_a_column_that_is_spelled_in_another_case_stays_the_same() -> None:
    """As the table has it, or as the oldest records had it; the key, too, and whichever of the two is declared."""
    stored = {"Id": "int", "Val": "int", "w": "string"} | SYSTEM
    renamed = form({"ID": "int", "val": "bigint", "x": "int"}, keys=("ID",))
    for declared in ((), ("ID",), ("id",)):
        found = evolve.plan("t", [renamed], stored, ("Id",), declared=declared)
        assert columns(found) == {"Id": "int", "Val": "bigint", "w": "string", "x": "int"}
        assert found.evolution == Evolution(added=(("x", "int"),), widened=(("Val", "bigint"),))
        assert found.layout.keys == ("Id",)
        assert found.dropped == ("w",)
        assert list(map(found.layout.home, renamed.fields)) == ["Id", "Val", "x"]
    forms = [form({"Id": "int", "v": "int"}, keys=("Id",)), form({"id": "int", "V": "string"}, number=2)]
    found = evolve.plan("t", forms, None)
    assert columns(found) == {"Id": "int", "v": "int", "v__v2": "string"}
    assert found.layout.keys == ("Id",)
    assert (
        type_versions.first_seen_types(forms, {1: "a", 2: "b"}, found.layout.stored_name)[
            "v", layout.type_family("string")
        ]
        == "b"
    )


def test_a_column_that_is_renamed_amid_a_batch_is_told_beside_another_new_one() -> None:
    """Records with a column that was added before the rename still have the old name: it went all the same."""
    stored = {"id": "int", "a": "int", "b": "string"} | SYSTEM
    before = form({"id": "int", "a": "int", "b": "string", "d": "int"}, keys=("id",))
    after = form({"id": "int", "a": "int", "bb": "string", "d": "int"}, keys=("id",), number=2)
    found = evolve.plan("t", [before, after], stored, ("id",))
    assert found.dropped == ("b",)
    assert found.warnings == ["added d, bb, removed b: if this is a rename, old rows keep the old name"]


@pytest.mark.parametrize("name", [*layout.RESERVED, "__START_AT", "_Seq", "v__v2", "v__v10", "a__v2__v3"])
def test_a_source_column_never_takes_the_place_of_ours(name: str) -> None:
    """N-3: a column that is called like one of ours is kept beside it, and its name comes back."""
    from replicator import names

    stored = layout.stored_name(name)
    assert stored not in layout.RESERVED
    assert layout.version_of(stored) == (stored, 1)
    assert names.decode(stored) == name


@pytest.mark.parametrize("name", ["v__v1", "v__v0", "v_v2", "v__v2x", "__v2"])
def test_a_name_that_only_resembles_a_version_stays_as_it_is(name: str) -> None:
    """There is no first version with a number, and none of nothing."""
    assert layout.stored_name(name) == name


@pytest.mark.parametrize("name", ["v__v2", "V__V2"])
def test_a_source_column_named_like_the_version_that_is_needed_stops_the_table(name: str) -> None:
    """Users would see two columns of one name, and no table format keeps names apart by case (G4)."""
    stored = {"id": "int", "v": "int", layout.stored_name(name): "int"} | SYSTEM
    with pytest.raises(SchemaRefused, match="v__v2, which the source already has"):
        evolve.plan("t", [with_v("string")], stored)


def test_a_table_beside_silver_follows_to_the_same_columns() -> None:
    """A history: what is new is added, types that changed places move with it, and a wider column of its own stays."""
    types = {"id": "int", "v": "string", "v__v2": "int", "n": "decimal(12,2)", "w": "date"}
    stored = {"id": "int", "v": "int", "n": "decimal(10,4)"}
    evolution = type_versions.evolution_to_layout(stored, layout.Layout(types, ("id",)))
    assert evolution.moved == (("v", "v__v2", "int"),)
    assert set(evolution.added) == {("v", "string"), ("w", "date")}
    assert evolution.widened == (("n", "decimal(14,4)"),)
    after = dict(types, n="decimal(14,4)")
    assert not type_versions.evolution_to_layout(after, layout.Layout(types, ("id",)))
    assert type_versions.can_follow(layout.Layout(types, ("id",)), stored)
    for anew in ({"id": "int", "v": "int"}, {"id": "int", "v": "string", "n": "decimal(10,4)"}):
        assert not type_versions.can_follow(layout.Layout(anew, ("id",)), stored)  # made anew: nobody can follow


def test_a_hostile_column_is_stored_encoded() -> None:
    """Architecture 9.1; its second version too."""
    found = evolve.plan("t", [form({"id": "int", "a.b c": "int"})], None)
    assert list(found.layout.types) == ["id", "a_x2e_b_x20_c"]
    again = evolve.plan("t", [form({"id": "int", "a.b c": "date"})], columns(found))
    assert list(again.layout.types) == ["id", "a_x2e_b_x20_c", "a_x2e_b_x20_c__v2"]


@pytest.mark.parametrize("policy", [Policy("evolve"), FAIL, FREEZE])
@pytest.mark.parametrize("name", ["_hoodie_is_deleted", "_Change_Type"])
def test_a_table_that_has_a_column_of_another_format_keeps_it(name: str, policy: Policy) -> None:
    """N-3: what was made before such names were kept apart goes on as it was, also where it is of the key."""
    stored = {"id": "int", name: "boolean"} | SYSTEM
    found = evolve.plan("t", [form({"id": "int", name: "boolean"}, ("id", name))], stored, ("id", name), policy=policy)
    assert (columns(found), found.layout.keys, found.changes) == ({"id": "int", name: "boolean"}, ("id", name), ())
    assert not found.evolution
    assert found.layout.stored_name(name) == name
    silent = form({"id": "int", name.upper(): "boolean"})
    assert columns(evolve.plan("t", [silent], stored, ("id",), policy=policy)) == columns(found)


@pytest.mark.parametrize(
    ("formats", "kept"),
    [
        ((), ["_x5f_change_type", "_hoodie_is_deleted"]),
        (("delta",), ["_x5f_change_type", "_hoodie_is_deleted"]),
        (("hudi",), ["_change_type", "_x5f_hoodie_is_deleted"]),
        (("delta", "hudi"), ["_x5f_change_type", "_x5f_hoodie_is_deleted"]),
    ],
)
def test_a_new_table_may_have_the_names_of_formats_that_it_is_not_kept_in(
    formats: tuple[str, ...], kept: list[str]
) -> None:
    """N-3: SQL of the configuration finds them as the source calls them; what a table has stays, whatever is said."""
    told = form({"_change_type": "int", "_hoodie_is_deleted": "boolean"}, ("_hoodie_is_deleted",))
    found = evolve.plan("t", [told], None, free=layout.unreserved_names(formats))
    assert (list(found.layout.types), found.layout.keys) == (kept, (kept[1],))
    for others in ((), ("hudi",), ("delta", "hudi")):
        again = evolve.plan(
            "t", [told], columns(found) | SYSTEM, ("_hoodie_is_deleted",), free=layout.unreserved_names(others)
        )
        assert (columns(again), again.changes) == (columns(found), ())


def test_how_a_column_of_another_format_is_written_is_known_by_its_own_name() -> None:
    """A3: records without types are read as those with types wrote the column."""
    told = encodings.from_forms([form({"_hoodie_is_deleted": "boolean"})])
    assert encodings.unify_case(told, ["_hoodie_is_deleted"]) == {
        ("_hoodie_is_deleted", layout.type_family("boolean")): "boolean"
    }
    assert {name for name, _ in encodings.unify_case(told)} == {"_x5f_hoodie_is_deleted"}
