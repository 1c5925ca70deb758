"""A model that grows under a table that is there: altered in place, with all that others have built on it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
from psycopg2 import errors, sql
from pyspark.sql import SparkSession

from replicator import failpoints
from replicator.errors import TargetMoved, TargetRefused
from replicator.sinks.postgres import PostgresSink, ddl, ledger
from replicator.sinks.postgres.types import parse_type
from replicator.spec import Applied, Model, ModelColumn, Progress
from tests.contract.commit_proxy import CommitProxy
from tests.contract.serving import CUSTOMERS, QUICK, Served, ann, customers, difference, execute, model

pytestmark = pytest.mark.stack

WIDENINGS = [
    ("smallint", "integer", "-32768"),
    ("smallint", "numeric(5,0)", "-32768"),
    ("integer", "bigint", "2147483647"),
    ("bigint", "numeric(20,0)", "-9223372036854775808"),
    ("bigint", "numeric", "9223372036854775807"),
    ("integer", "numeric(12,2)", "-2147483648"),
    ("real", "double precision", "1.5"),
    ("numeric(10,2)", "numeric(12,4)", "99999999.99"),
    ("numeric(10,2)", "numeric", "-0.01"),
    ("varchar(5)", "varchar(9)", "Zoë 名"),
    ("varchar(5)", "text", "  a "),
    ("char(3)", "char(5)", "ab"),
    ("char(3)", "text", "ab"),
    ("timestamp(3)", "timestamp", "1969-12-31 23:59:59.999"),
    ("timestamptz(0)", "timestamptz(6)", "2024-03-31 02:30:00+00"),
    ("time(0)", "time", "24:00:00"),
    ("integer[]", "bigint[]", "{1,NULL}"),
]
COARSE_AND_FINE = ("timestamp(0)", "timestamp")
VIEW = """
    SELECT pg_get_viewdef(c.oid), c.reloptions, pg_get_userbyid(c.relowner), obj_description(c.oid, 'pg_class'),
        (SELECT array_agg(a::text ORDER BY a::text) FROM aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a),
        (SELECT array_agg((t.attname, t.attacl, col_description(c.oid, t.attnum), pg_get_expr(d.adbin, c.oid))::text)
            FROM pg_attribute t LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = t.attnum
            WHERE t.attrelid = c.oid AND t.attnum > 0),
        (SELECT array_agg(pg_get_ruledef(r.oid) ORDER BY r.rulename) FROM pg_rewrite r
            WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN'),
        (SELECT array_agg(pg_get_triggerdef(t.oid) ORDER BY t.tgname) FROM pg_trigger t WHERE t.tgrelid = c.oid)
    FROM pg_class c WHERE c.oid = %s::regclass
"""


def prepared(served: Served, of: Model) -> None:
    """The model's table in its schema, as a publication would have made it."""
    with closing(served.connection.open()) as session, session, session.cursor() as cursor:
        ddl.create_schema(cursor, served.schema)
        ledger.create(cursor, served.schema)
        ddl.evolve_target(cursor, of, complete=True)


def evolved(served: Served, of: Model) -> None:
    """The model's table altered in one transaction."""
    with closing(served.connection.open()) as session, session, session.cursor() as cursor:
        ddl.evolve_target(cursor, of, complete=False)


def published(served: Served, of: Model) -> None:
    """The ledger row of a model that was published."""
    with closing(served.connection.open()) as session, session, session.cursor() as cursor:
        ledger.write(cursor, ddl.target_of(of), of, Progress("gold-1", 1))


def types(served: Served, table: str) -> dict[str, str]:
    query = (
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = {}::regclass "
        "AND attnum > 0 AND NOT attisdropped"
    )
    return dict(served.run(sql.SQL(query).format(sql.Literal(f'"{served.schema}"."{table}"'))))


def test_every_widening_is_done_in_place_and_values_stay(postgres: Served) -> None:
    """Types of section 8 of types.md: one statement, no row is lost, the old values read the same."""
    narrow = model(postgres.schema, "grows", {"id": "integer"} | {f"c{n}": w[0] for n, w in enumerate(WIDENINGS)})
    wide = model(postgres.schema, "grows", {"id": "integer"} | {f"c{n}": w[1] for n, w in enumerate(WIDENINGS)})
    prepared(postgres, narrow)
    values = sql.SQL(", ").join(sql.Literal(value) for _, _, value in WIDENINGS)
    table = sql.Identifier(postgres.schema, "grows")
    postgres.run(sql.SQL("INSERT INTO {} VALUES (1, {})").format(table, values))
    postgres.run(sql.SQL("CREATE VIEW {} AS SELECT * FROM {}").format(sql.Identifier(postgres.schema, "all"), table))
    texts = sql.SQL(", ".join(f"c{number}::text" for number in range(len(WIDENINGS))))
    before = postgres.run(sql.SQL("SELECT {} FROM {}").format(texts, table))
    evolved(postgres, wide)
    after = postgres.run(sql.SQL("SELECT {} FROM {}").format(texts, table))
    assert list(types(postgres, "grows").values()) == [str(parse_type(c.type)) for c in wide.columns]
    assert types(postgres, "all") == types(postgres, "grows")
    numbers = {n for n, (_, new, _) in enumerate(WIDENINGS) if new.startswith(("numeric(12", "char("))}
    assert [v for n, v in enumerate(after[0]) if n not in numbers] == [
        v for n, v in enumerate(before[0]) if n not in numbers
    ]


def test_views_come_back_as_they_were(postgres: Served, admin: Served) -> None:
    """Definition, options, owner, rights, comments, defaults, rules and triggers; what reads views too; and a view that
    reads other columns is not touched at all.
    """
    prepared(postgres, customers(postgres.schema))
    reader, owner = f"reader_{postgres.schema}", f"owner % {postgres.schema}"
    execute(admin, f'CREATE ROLE {reader}; CREATE ROLE "{owner}"; GRANT "{owner}" TO {postgres.connection.user}; '
                   f'GRANT CREATE, USAGE ON SCHEMA $ TO "{owner}"')  # fmt: skip
    try:
        execute(
            postgres,
            f"""
            CREATE VIEW $."Kund%en ""x" WITH (security_barrier, check_option = local) AS
                SELECT id AS "Nr", name FROM $.dim_customers WHERE credit > 0;
            ALTER VIEW $."Kund%en ""x" ALTER COLUMN name SET DEFAULT 'it''s 100%';
            COMMENT ON VIEW $."Kund%en ""x" IS 'what''s %s worth';
            COMMENT ON COLUMN $."Kund%en ""x"."Nr" IS 'the % number';
            GRANT SELECT ON $."Kund%en ""x" TO PUBLIC;
            GRANT INSERT, UPDATE ON $."Kund%en ""x" TO {reader} WITH GRANT OPTION;
            GRANT UPDATE (name) ON $."Kund%en ""x" TO PUBLIC;
            REVOKE DELETE ON $."Kund%en ""x" FROM {postgres.connection.user};
            CREATE VIEW $.second AS
                SELECT v."Nr", d.name FROM $."Kund%en ""x" v JOIN $.dim_customers d ON d.id = v."Nr";
            CREATE RULE quiet AS ON DELETE TO $.second DO INSTEAD NOTHING;
            CREATE FUNCTION $.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
            CREATE TRIGGER swallow INSTEAD OF INSERT ON $.second FOR EACH ROW EXECUTE FUNCTION $.nothing();
            CREATE VIEW $.third AS SELECT name FROM $.second UNION SELECT name FROM $.dim_customers;
            ALTER VIEW $.third OWNER TO "{owner}";
            CREATE VIEW $.apart AS SELECT id, credit FROM $.dim_customers;
            ALTER DEFAULT PRIVILEGES IN SCHEMA $ GRANT ALL ON TABLES TO {reader};
            """,
        )
        views = [f'"{postgres.schema}".{name}' for name in ('"Kund%en ""x"', "second", "third", "apart")]
        before = [postgres.run(sql.SQL(VIEW.replace("%s", "{}")).format(sql.Literal(view))) for view in views]
        untouched = execute(postgres, "SELECT '$.apart'::regclass::oid")
        evolved(postgres, wider_name(customers(postgres.schema)))
        assert [postgres.run(sql.SQL(VIEW.replace("%s", "{}")).format(sql.Literal(view))) for view in views] == before
        assert execute(postgres, "SELECT '$.apart'::regclass::oid") == untouched
        assert types(postgres, "third") == {"name": "character varying(30)"}
    finally:
        execute(admin, f'DROP SCHEMA $ CASCADE; DROP OWNED BY {reader}, "{owner}"; DROP ROLE {reader}, "{owner}"')


def wider_name(of: Model, kind: str = "varchar(30)") -> Model:
    return replace(of, columns=(of.columns[0], ModelColumn("name", kind, nullable=False), *of.columns[2:]))


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("CREATE MATERIALIZED VIEW $.kept AS SELECT name FROM $.dim_customers", "kept"),
        ("CREATE TEMP VIEW passing AS SELECT name FROM $.dim_customers", "passing"),
        (
            """
            CREATE VIEW $.v AS SELECT name FROM $.dim_customers;
            CREATE FUNCTION $.f() RETURNS SETOF $.v LANGUAGE sql AS 'SELECT NULL::varchar'
            """,
            "other objects depend",
        ),
        ("ALTER TABLE $.dim_customers ADD COLUMN made text GENERATED ALWAYS AS (name || '') STORED", "generated"),
    ],
    ids=["materialized", "temporary", "function", "generated"],
)
def test_what_cannot_be_made_again_is_named_and_stays(postgres: Served, made: str, told: str) -> None:
    """Nothing is dropped by CASCADE: the model is refused, and the table is as it was."""
    prepared(postgres, customers(postgres.schema))
    with closing(postgres.connection.open()) as session, session.cursor() as cursor:
        cursor.execute(made.replace("$", f'"{postgres.schema}"'))
        session.commit()
        with pytest.raises(TargetRefused, match=told) as caught, postgres.sink._translated("dim_customers"):
            ddl.evolve_target(cursor, wider_name(customers(postgres.schema)), complete=False)
        session.rollback()
    assert caught.value.where == "dim_customers"
    assert types(postgres, "dim_customers")["name"] == "character varying(10)"


def test_a_view_of_somebody_elses_is_named_with_its_owner(postgres: Served, admin: Served) -> None:
    """Who may not be its owner cannot make it again, and Postgres' words for that name the role alone."""
    prepared(postgres, customers(postgres.schema))
    execute(admin, "CREATE VIEW $.theirs AS SELECT name FROM $.dim_customers")
    with pytest.raises(
        TargetRefused, match="theirs reads a column that must be widened, and belongs to postgres"
    ) as caught:
        evolved(postgres, wider_name(customers(postgres.schema)))
    assert str(caught.value.fix).startswith("Have postgres drop it")


def test_what_the_owner_of_a_table_has_to_alter_is_said(postgres: Served, admin: Served) -> None:
    """Of a table that is somebody else's: in his words, and there is nothing left to do once he has run them."""
    of = customers(postgres.schema)
    prepared(postgres, of)
    execute(admin, "ALTER TABLE $.dim_customers OWNER TO postgres")
    grown = replace(of, columns=(of.columns[0], ModelColumn("name", "text"), ModelColumn("at", "date")))
    with pytest.raises(TargetRefused, match=r"table \S+\.dim_customers belongs to another role and lacks") as caught:
        evolved(postgres, grown)
    statement = str(caught.value.fix).partition(": ")[2]
    assert statement.endswith('ADD COLUMN "at" date, ALTER COLUMN "name" TYPE text, ALTER COLUMN "name" DROP NOT NULL')
    execute(admin, statement.replace(f'"{postgres.schema}"', "$"))
    evolved(postgres, grown)


@pytest.mark.parametrize(
    ("altered", "told"),
    [
        (
            "ALTER TABLE $.dim_customers ALTER credit TYPE numeric(12,2)",
            r"credit.*numeric\(12,2\), not numeric\(10,2\)",
        ),
        ("ALTER TABLE $.dim_customers ALTER credit TYPE text", r"credit.*text, not numeric"),
        (
            "CREATE DOMAIN $.money AS numeric(10,2); ALTER TABLE $.dim_customers ALTER credit TYPE $.money",
            r"credit.*money.*Models do not support \S+money: alter the table",
        ),
        ("ALTER TABLE $.dim_customers ADD COLUMN mine integer NOT NULL", "mine.*no default"),
        ("ALTER TABLE $.dim_customers DROP CONSTRAINT dim_customers_pkey", "no unique key on id"),
        (
            "ALTER TABLE $.dim_customers DROP CONSTRAINT dim_customers_pkey, ADD PRIMARY KEY (id) DEFERRABLE",
            "on id is DEFERRABLE",
        ),
        ("ALTER TABLE $.dim_customers RENAME id TO former", "no unique key on id"),
        ("ALTER TABLE $.dim_customers RENAME TO t; CREATE VIEW $.dim_customers AS SELECT * FROM $.t", "is not a table"),
    ],
    ids=["wider", "text", "domain", "stranger", "key", "deferrable key", "renamed key", "view"],
)
def test_a_table_that_cannot_become_the_models_is_refused(postgres: Served, altered: str, told: str) -> None:
    """The column and both types are named; nothing is changed."""
    of = customers(postgres.schema)
    prepared(postgres, of)
    execute(postgres, altered)
    with closing(postgres.connection.open()) as session, session.cursor() as cursor:
        with pytest.raises(TargetRefused, match=told) as caught:
            ddl.prepare_target(cursor, of, complete=True)
        assert ddl.needs_full_publish(cursor, of)
    assert caught.value.where == of.name


def test_columns_of_others_and_their_rights_stay(postgres: Served, admin: Served) -> None:
    """A column that the model does not have, its default, a collation, and comments where the model says nothing."""
    of = customers(postgres.schema)
    prepared(postgres, of)
    execute(
        postgres,
        """
        ALTER TABLE $.dim_customers ADD COLUMN note text DEFAULT 'mine',
            ADD COLUMN nr integer GENERATED BY DEFAULT AS IDENTITY;
        ALTER TABLE $.dim_customers ALTER name TYPE varchar(10) COLLATE "C";
        COMMENT ON TABLE $.dim_customers IS 'by hand';
        COMMENT ON COLUMN $.dim_customers.credit IS 'by hand';
        """,
    )
    described = replace(wider_name(of), columns=(
        replace(of.columns[0], description="Key: 100% the source's \\ 'own'"), *wider_name(of).columns[1:]
    ))  # fmt: skip
    evolved(postgres, described)
    found = execute(
        postgres,
        "SELECT attname, col_description(attrelid, attnum), attcollation::regcollation::text FROM pg_attribute "
        "WHERE attrelid = '$.dim_customers'::regclass AND attnum > 0 ORDER BY attnum",
    )
    assert found == [
        ("id", "Key: 100% the source's \\ 'own'", "-"),
        ("name", None, '"C"'),
        ("credit", "by hand", "-"),
        ("note", None, '"default"'),
        ("nr", None, "-"),
    ]
    assert execute(postgres, "SELECT obj_description('$.dim_customers'::regclass, 'pg_class')") == [("by hand",)]
    evolved(postgres, replace(described, description="One row per customer"))
    assert execute(postgres, "SELECT obj_description('$.dim_customers'::regclass)") == [("One row per customer",)]


@pytest.mark.parametrize("table", ledger.TABLES)
def test_tables_of_ours_in_a_schema_say_what_they_are(postgres: Served, table: str) -> None:
    """Who looks into the target with psql learns whose they are, and what taking a row out does."""
    prepared(postgres, customers(postgres.schema))
    [(said,)] = execute(postgres, f"SELECT obj_description('$.{table}'::regclass)")
    assert said is not None
    assert said.startswith("Kept by replicator: ")


@pytest.mark.spark
def test_readers_keep_their_rights_and_views_through_every_publication(
    spark: SparkSession, postgres: Served, admin: Served
) -> None:
    """From the first one on: default privileges give the rights, a view reads the table, and a part, the whole, a new
    identity and a wider column change neither.
    """
    reader, of = f"reader_{postgres.schema}", customers(postgres.schema)
    execute(admin, f"CREATE ROLE {reader}")
    try:
        execute(postgres, f"CREATE SCHEMA $; GRANT USAGE ON SCHEMA $ TO {reader}; "
                          f"ALTER DEFAULT PRIVILEGES IN SCHEMA $ GRANT SELECT ON TABLES TO {reader}")  # fmt: skip
        postgres.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
        execute(
            postgres, f"CREATE VIEW $.names AS SELECT name FROM $.dim_customers; GRANT SELECT ON $.names TO {reader}"
        )
        seen = f"SET ROLE {reader}; SELECT d.name, v.name FROM $.dim_customers d JOIN $.names v USING (name) ORDER BY 1"
        assert execute(admin, seen) == [("Ann", "Ann")]
        postgres.sink.publish([difference(spark, of, [ann("Bob")], CUSTOMERS, 2)])
        assert execute(admin, seen) == [("Bob", "Bob")]
        anew = difference(spark, wider_name(of), [ann("Cid")], CUSTOMERS, 0, complete=True, input="gold-2")
        postgres.sink.publish([anew])
        assert execute(admin, seen) == [("Cid", "Cid")]
        longest = wider_name(of, "text")
        assert postgres.sink.progress(longest) == Progress("gold-2", 0), "longer texts need no row again"
        postgres.sink.publish([difference(spark, longest, [ann("Dan " * 20)], CUSTOMERS, 1, input="gold-2")])
        assert execute(admin, seen) == [("Dan " * 20, "Dan " * 20)]
    finally:
        execute(admin, f"DROP SCHEMA $ CASCADE; DROP OWNED BY {reader}; DROP ROLE {reader}")


@pytest.mark.spark
def test_new_columns_come_with_their_values_or_not_at_all(spark: SparkSession, postgres: Served) -> None:
    """The table is altered in the transaction of the rows: a cut before COMMIT, and the answer to COMMIT lost, leave
    nothing half; a new column that may not be NULL is NOT NULL then, one that may be NULL now is not.
    """
    of = customers(postgres.schema)
    postgres.sink.publish([difference(spark, of, [ann(), ann(key=2)], CUSTOMERS, 1, complete=True)])
    old = (of.columns[0], ModelColumn("name", "text"), of.columns[2])
    grown = replace(of, columns=(*old, ModelColumn("city", "text", nullable=False)))
    rows = [(1, "Ann", None, "Rome", "upsert"), (2, None, None, "Oslo", "upsert")]
    schema = "id INT, name STRING, credit DECIMAL(10,2), city STRING, _op STRING"
    hole = difference(spark, grown, [*rows, (3, "Cid", None, None, "upsert")], schema, 1, complete=True)
    with pytest.raises(TargetRefused, match="column city"):
        postgres.sink.publish([hole])
    assert list(types(postgres, of.name)) == ["id", "name", "credit"]
    with CommitProxy(postgres.connection.host, postgres.connection.port) as proxy:
        through = PostgresSink(replace(postgres.connection, host="127.0.0.1", port=proxy.port), backoff=QUICK)
        proxy.cut_before(b"WITH written", b"COMMIT")
        whole = difference(spark, grown, rows, schema, 1, complete=True)
        assert through.publish([whole]) == {of.name: Applied(0, 2, 0, 1)}
        wider = replace(grown, columns=(*grown.columns, ModelColumn("more", "integer")))
        proxy.swallow_after(b"WITH written", b"COMMIT")
        more = difference(spark, wider, [(*row[:4], 7, "upsert") for row in rows],
                          schema.replace(", _op", ", more INT, _op"), 1, complete=True)  # fmt: skip
        assert through.publish([more]) == {of.name: Applied(0, 2, 0, 1)}
        assert (proxy.cut, proxy.swallowed) == (1, 1)
    assert postgres.rows(wider) == [(1, "Ann", None, "Rome", 7), (2, None, None, "Oslo", 7)]
    with pytest.raises(errors.NotNullViolation):
        execute(postgres, "INSERT INTO $.dim_customers (id) VALUES (9)")


@pytest.mark.spark
def test_a_table_that_somebody_dropped_comes_back_whole(spark: SparkSession, postgres: Served) -> None:
    """The ledger alone is no proof of the rows: without its table a model has no progress, and no part is taken."""
    of = customers(postgres.schema)
    postgres.sink.publish([difference(spark, of, [ann(), ann(key=2)], CUSTOMERS, 5, complete=True)])
    execute(postgres, "DROP TABLE $.dim_customers")
    assert postgres.sink.progress(of) is None
    with pytest.raises(TargetRefused, match="does not match model"):
        postgres.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 6)])
    with CommitProxy(postgres.connection.host, postgres.connection.port) as proxy:
        through = PostgresSink(replace(postgres.connection, host="127.0.0.1", port=proxy.port), backoff=QUICK)
        proxy.cut_before(b"pg_advisory_lock", b"SET CONSTRAINTS ALL DEFERRED")
        whole = difference(spark, of, [ann(), ann(key=2)], CUSTOMERS, 5, complete=True)
        assert through.publish([whole]) == {of.name: Applied(2, 0, 0, 5)}
    assert len(postgres.rows(of)) == 2


@pytest.mark.spark
def test_a_table_that_somebody_made_anew_is_sent_whole(spark: SparkSession, postgres: Served) -> None:
    """To have it in partitions, say: what was published went to another table of that name. A ledger of an earlier
    checkout, which does not say which one it was, goes on as it is.
    """
    of = customers(postgres.schema)
    whole = difference(spark, of, [ann(), ann(key=2)], CUSTOMERS, 5, complete=True)
    postgres.sink.publish([whole])
    anew = "ALTER TABLE $.dim_customers RENAME TO old; CREATE TABLE $.dim_customers (LIKE $.old INCLUDING ALL)"
    execute(postgres, anew)
    assert postgres.sink.progress(of) is None
    with pytest.raises(TargetRefused, match="a partial publication"):
        postgres.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 6, since=Progress("gold-1", 5))])
    assert postgres.sink.publish([whole]) == {of.name: Applied(2, 0, 0, 5)}
    assert postgres.sink.progress(of) == Progress("gold-1", 5)
    execute(postgres, "UPDATE $._replicator_ledger SET input = 'gold-1'; DROP TABLE $.old")
    execute(postgres, anew)
    assert postgres.sink.progress(of) == Progress("gold-1", 5)


@pytest.mark.spark
@pytest.mark.parametrize(
    "anew",
    [
        "DROP TABLE $.dim_customers; CREATE TABLE $.dim_customers (id integer PRIMARY KEY, name text, credit numeric)",
        "ALTER TABLE $.dim_customers DROP credit; ALTER TABLE $.dim_customers ADD credit numeric",
        "ALTER TABLE $.dim_customers DROP credit",
    ],
    ids=["table", "column", "dropped"],
)
def test_what_is_made_anew_while_rows_are_staged_gets_no_part_of_them(
    spark: SparkSession, postgres: Served, anew: str
) -> None:
    """A part is for what was there when it was asked for: the next publication sends all."""
    of = model(postgres.schema, "dim_customers", {"id": "integer", "name": "text", "credit": "numeric"})
    postgres.sink.publish([difference(spark, of, [ann(), ann(key=2)], CUSTOMERS, 5, complete=True)])

    def somebody(point: str) -> None:
        if point == "publish.all_staged":
            failpoints.arm(None)
            execute(postgres, anew)

    with failpoints.watched(somebody), pytest.raises(TargetRefused) as caught:
        postgres.sink.publish([difference(spark, of, [ann("Bea")], CUSTOMERS, 6)])
    assert isinstance(caught.value.refused[of.name], TargetMoved)
    assert postgres.sink.progress(of) is None
    whole = [ann("Bea"), ann(key=2)]
    postgres.sink.publish([difference(spark, of, whole, CUSTOMERS, 6, complete=True)])
    assert [row[1:] for row in postgres.rows(of)] == [(row[1], row[2]) for row in whole]


@pytest.mark.parametrize(
    "altered",
    ["ALTER at TYPE timestamp", "DROP at; ALTER TABLE $.visits ADD at timestamp"],
    ids=["of another type", "anew"],
)
def test_a_column_that_somebody_altered_or_made_anew_is_sent_whole(postgres: Served, altered: str) -> None:
    """It has rounded values, or none, though table and ledger are there and the column is as its model wants it."""
    coarse, fine = (model(postgres.schema, "visits", {"id": "integer", "at": kind}) for kind in COARSE_AND_FINE)
    prepared(postgres, coarse)
    published(postgres, coarse)
    execute(postgres, f"ALTER TABLE $.visits {altered}")
    assert postgres.sink.progress(fine) is None
    published(postgres, fine)
    assert postgres.sink.progress(fine) == Progress("gold-1", 1)


@pytest.mark.spark
def test_a_table_that_somebody_made_of_partitions_is_published_to(spark: SparkSession, postgres: Served) -> None:
    """Inserted, updated and deleted rows are told apart there too, also where a partition has its columns otherwise; of
    a row without a partition is said what is amiss.
    """
    of = customers(postgres.schema)
    execute(
        postgres,
        """
        CREATE SCHEMA $;
        CREATE TABLE $.dim_customers (id integer PRIMARY KEY, name varchar(10), credit numeric(10,2))
            PARTITION BY RANGE (id);
        CREATE TABLE $.early PARTITION OF $.dim_customers FOR VALUES FROM (0) TO (10);
        CREATE TABLE $.late (credit numeric(10,2), id integer NOT NULL, name varchar(10));
        ALTER TABLE $.dim_customers ATTACH PARTITION $.late FOR VALUES FROM (10) TO (20);
        """,
    )
    first = [ann(), ann("Bob", key=2), ann("Zoe", key=12)]
    batches = [
        (first, Applied(3, 0, 0, 1)),
        ([ann(), ann("Bea", key=12), ann("Cid", key=13), ann(op="delete", key=2)], Applied(1, 1, 1, 2)),
    ]
    for version, (rows, told) in enumerate(batches, start=1):
        done = postgres.sink.publish([difference(spark, of, rows, CUSTOMERS, version, complete=version == 1)])
        assert done == {of.name: told}
    assert [row[:2] for row in postgres.rows(of)] == [(1, "Ann"), (12, "Bea"), (13, "Cid")]
    with pytest.raises(TargetRefused, match="23514 - no partition of table dim_customers accepts a row"):
        postgres.sink.publish([difference(spark, of, [ann(key=20)], CUSTOMERS, 3)])
