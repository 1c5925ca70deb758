"""Positions: where a change stands in its source's own commit order, as sortable text (debezium.md section L).

A position is the text ``major(20 hex) minor(16 hex)``; ``_seq`` is the epoch, the position and the Kafka offset (Q1).
Plain text comparison of ``_seq`` is the total order: bigger is newer.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, Window
from pyspark.sql import functions as F

from replicator.debezium.decoding import let
from replicator.debezium.seq_format import CONNECTOR_BY_FIELD
from replicator.debezium.source_block import SOURCE_FIELDS
from replicator.spec import BY_GTID

Source = Column | Mapping[str, Column]
"""A struct of SOURCE_FIELDS, or one column per field."""

LOWEST = "0" * 36
"""Below every position; also the position of every record of a topic in offset mode (Q8)."""

MAJOR_DIGITS = 20
"""Hex digits of a position's major part."""

POSITION_DIGITS = len(LOWEST)
"""Hex digits of a position."""

FIRST_EPOCH = "0000"
"""The epoch of a source that never began another one (Q2)."""

DOMAIN_PREFIX = "domain "
"""Precedes the number of a GTID domain at the end of a stream's name."""

_TWO_LSNS = r'^\["[0-9]{1,18}","[0-9]{1,18}"\]$'
_FILE = r"\.([0-9]{1,10})$"
_GTID = "^([0-9]{1,10})-[0-9]{1,10}-([0-9]{1,18})$"
EPOCH_MAJOR_DIGITS = len(FIRST_EPOCH) + MAJOR_DIGITS
_BEFORE_OFFSET = len(FIRST_EPOCH) + len(LOWEST)
_MAX_FILE = 0xFFFFFFFF
_MAX_POS = 0xFFFFFFFFFFFF
_PLACE = r'(?:file|lsn|commit_lsn|commit_scn)"\s*:\s*(?!null|""|"0|"NULL"|-)'
_POSITION_IN_JSON = rf'"source"\s*:\s*\{{[^{{}}]*"{_PLACE}|"__(?:source_)?{_PLACE}'


def is_malformed(value: Column) -> Column:
    """Whether a record for which :func:`build` gives no position states one that does not fit (Q1): in none of D9's
    spellings of "no position".
    """
    return value.rlike(_POSITION_IN_JSON)


def parse_numbers(source: Source) -> Column:
    """STRUCT<file, gtid, commit BIGINT>: the numbers in texts of ``source`` that :func:`build` mentions repeatedly.
    In a projection of their own the texts are parsed once.
    """
    sequence = source["sequence"]
    # two numbers, which nearly all are, need no JSON parser
    is_plain = sequence.rlike(_TWO_LSNS)
    commit = F.substring_index(F.substring_index(sequence, '","', 1), '"', -1)
    either = let(F.from_json(sequence, "ARRAY<STRING>"), lambda pair: F.transform(pair, _number))
    return F.struct(
        file_number(source["file"]).alias("file"),
        gtid_number(source["gtid"]).alias("gtid"),
        F.when(is_plain, commit.cast("bigint")).otherwise(F.get(either, F.lit(0))).alias("commit"),
    )


def file_number(file: Column) -> Column:
    """The number at the end of a binlog file's name."""
    return _digits(F.regexp_extract(file, _FILE, 1))


def gtid_number(gtid: Column) -> Column:
    """The sequence number of a MariaDB transaction within its GTID domain."""
    return _digits(F.regexp_extract(gtid, _GTID, 2))


def _digits(found: Column) -> Column:
    return F.when(found != "", found.cast("bigint"))


def build(source: Source, is_snapshot: Column, binlog: str = "file_pos", known: Column | None = None) -> Column:
    """The record's own position (Q4; Q5 for snapshot rows, before the running maximum); NULL if it has none.

    D9's spellings of "no position" give NULL. ``known`` is the source's :func:`parse_numbers` if that is a column
    already. ``binlog`` is what orders changes from MySQL and MariaDB: ``file_pos``, ``file_pos_row``, or ``gtid``
    (MariaDB only).
    """
    known = parse_numbers(source) if known is None else known
    connector = F.lower(source["connector"])
    in_binlog = _binlog(source, known["file"], with_row=binlog == "file_pos_row")
    if binlog == BY_GTID:
        in_binlog = F.when(connector == "mariadb", _position_text(known["gtid"], F.lit(0))).otherwise(in_binlog)
    return (
        F.when(connector.isin("mysql", "mariadb"), in_binlog)
        .when(connector == "postgresql", _postgres(source, known, is_snapshot))
        .when(connector == "sqlserver", _sqlserver(source))
        .when(connector == "oracle", _oracle(source, is_snapshot))
        .when(connector == "mongodb", F.lit(LOWEST))
    )


def change_identity(
    source: Column, own: Column, is_snapshot: Column, known: Column, binlog: str = "file_pos"
) -> Column:
    """Where a change happened according to the source, the same each time it is sent; NULL if the source does not say.

    The text is a place of POSITION_DIGITS characters, followed by what distinguishes changes of one place, if the
    source has it: the row of a binlog event, SQL Server's ``change_lsn``, Oracle's ``scn``. ``own``, the result of
    :func:`build`, is not enough: PostgreSQL's begins with the previous commit, which a restarted connector may have
    forgotten (Q12), while the LSN of a record stays; by GTID a whole transaction has one position. For a snapshot row
    it is the place at which the whole snapshot was read, right after the commit that SQL Server and Oracle name, since
    the snapshot contains that commit (D2); LOWEST if nothing names a place (GTID).
    """
    lsn = F.when(source["lsn"] >= 0, _position_text(source["lsn"], F.lit(0)))
    in_postgres = F.when(is_snapshot, F.coalesce(lsn, _position_text(known["commit"], F.lit(0)))).otherwise(lsn)
    connector = F.lower(source["connector"])
    after_commit = F.when(is_snapshot & connector.isin("sqlserver", "oracle"), _with_minor(own, 1))
    of_server = (
        [F.when(connector == "mariadb", _position_text(known["gtid"], source["pos"]))] if binlog == BY_GTID else []
    )
    at = F.coalesce(after_commit, *of_server, own)
    place = F.when(connector == "postgresql", in_postgres).when(connector != "mongodb", at)
    part = F.coalesce(source["row"].cast("string"), source["change_lsn"], source["scn"], F.lit(""))
    apart = F.when(connector == "postgresql", "").otherwise(part)
    return F.when(is_snapshot, F.coalesce(place, F.lit(LOWEST))).otherwise(F.concat(place, apart))


def stream(source: Source, binlog: str = "file_pos") -> Column:
    """The scope in which positions rise with the offsets of a partition: connector and database server (Q4); by
    ``gtid`` also the domain, which counts on its own.

    NULL where they need not rise: the LSNs of records without a ``sequence`` interleave, and offset mode has none.
    """
    connector = F.lower(source["connector"])
    per_database = F.when(connector == "sqlserver", source["db"])
    if binlog == BY_GTID:
        domain = F.regexp_extract(source["gtid"], _GTID, 1)
        per_database = F.when(connector == "mariadb", F.concat(F.lit(DOMAIN_PREFIX), domain)).otherwise(per_database)
    in_commit_order = connector.isin("mysql", "mariadb", "sqlserver", "oracle") | (
        (connector == "postgresql") & source["sequence"].isNotNull()
    )
    return F.when(in_commit_order, F.concat_ws("/", connector, source["name"], per_database))


def from_timestamp(ts_ms: Column) -> Column:
    """The position of a change under ``sequence_by: source.ts_ms`` (Q9): the source's time; the offset breaks ties."""
    return _position_text(ts_ms, F.lit(0))


def flattened_source(field: dict[str, Column], binlog: str = "file_pos") -> Column:
    """The SOURCE_FIELDS struct from a flattened record's metadata fields (section F): ``__lsn`` or ``__source_lsn``.

    If no field names the connector, it is inferred from the others; a binlog ordered by GTID is MariaDB's.
    """
    typed = {part.split(" ")[0]: part.split(" ")[1] for part in SOURCE_FIELDS.split(", ")}
    by_field = CONNECTOR_BY_FIELD | (dict.fromkeys(("file", "gtid"), "mariadb") if binlog == BY_GTID else {})
    found = [F.when(field[name].isNotNull(), F.lit(connector)) for name, connector in by_field.items() if name in field]
    field = field | {"connector": F.coalesce(field.get("connector", F.lit(None)), *found)}
    return F.struct(*[_typed(field.get(name, F.lit(None)), kind).alias(name) for name, kind in typed.items()])


def _typed(text: Column, kind: str) -> Column:
    """A metadata field of a flattened record in its type; NULL for text that is not a number, never an error."""
    text = text.cast("string")
    return text if kind == "STRING" else F.when(text.rlike("^-?[0-9]{1,18}$"), text.cast(kind))


def seq(position_text: Column, offset: Column, epoch: Column | None = None) -> Column:
    """``_seq`` from a position and the Kafka offset (Q1); NULL if the position is. ``epoch``: four hex digits (Q2)."""
    return F.concat(F.lit(FIRST_EPOCH) if epoch is None else epoch, position_text, _hex(offset, 16))


def major(seq_text: Column) -> Column:
    """Epoch and major part of a ``_seq``: shared by a transaction's changes if the source sends no id of it (C5)."""
    return F.substring(seq_text, 1, EPOCH_MAJOR_DIGITS)


def minor(position_text: Column) -> Column:
    """The minor part of a position."""
    return F.substring(position_text, MAJOR_DIGITS + 1, len(LOWEST) - MAJOR_DIGITS)


def without_offset(seq_text: Column) -> Column:
    """A ``_seq`` without the offset: shared by all records of one source position."""
    return F.substring(seq_text, 1, _BEFORE_OFFSET)


def next_seq(seq_text: Column) -> Column:
    """The ``_seq`` right after the given one: the same position, one offset later. Where only the offset orders
    changes, another record may have that one: then a text between the two.
    """
    offset = F.conv(F.substring(seq_text, _BEFORE_OFFSET + 1, 16), 16, 10).cast("bigint")
    later = F.concat(without_offset(seq_text), _hex(offset + 1, 16))
    return F.when(is_by_offset(seq_text), F.concat(seq_text, F.lit("+"))).otherwise(later)


def is_duplicate(one: Column, other: Column) -> Column:
    """Whether two ``_seq`` have the same position in the source, as a change and its redelivery do (J1)."""
    return (without_offset(one) == without_offset(other)) & ~is_by_offset(other)


def transaction_lsn(seq_text: Column, transaction: Column) -> Column:
    """Epoch, transaction and LSN of a PostgreSQL change: they stay the same when it is sent again and its major part
    is raised to that of its transaction (Q12). NULL if the source sends no transaction id.
    """
    lsn = minor(F.substring(seq_text, len(FIRST_EPOCH) + 1, POSITION_DIGITS))
    is_known = (
        (transaction != major(seq_text)) & (lsn != "0" * (POSITION_DIGITS - MAJOR_DIGITS)) & ~is_by_offset(seq_text)
    )
    return F.when(is_known, F.concat_ws("/", F.substring(seq_text, 1, len(FIRST_EPOCH)), transaction, lsn))


def is_by_offset(seq_text: Column) -> Column:
    """Whether nothing but the offset orders the change (Q8)."""
    return F.substring(seq_text, len(FIRST_EPOCH) + 1, len(LOWEST)) == LOWEST


def with_running_maximum(own: Column, is_snapshot: Column, before: Column, folder: Column | None = None) -> Column:
    """The position, with snapshot rows raised above everything before them in their partition and epoch (Q5):
    max(own, running maximum).

    ``before`` is the maximum of the partition and epoch below the range that is being read, LOWEST if none. Lines of
    objects have a known order within one ``folder`` only, which is where a row's other changes are.
    """
    running = F.greatest(running_maximum(own, folder), before)
    return F.when(is_snapshot, F.greatest(F.coalesce(own, F.lit(LOWEST)), running)).otherwise(own)


def running_maximum(own: Column, folder: Column | None = None) -> Column:
    """The greatest position before a record in its partition and epoch, among the given records; LOWEST if none."""
    places = Window.partitionBy("topic", "partition", "epoch", *([] if folder is None else [folder]))
    lower_offsets = places.orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    return F.coalesce(F.max(own).over(lower_offsets), F.lit(LOWEST))


def _with_minor(position_text: Column, minor_part: int) -> Column:
    """The position with its minor part replaced."""
    return F.concat(F.substring(position_text, 1, MAJOR_DIGITS), _hex(F.lit(minor_part), len(LOWEST) - MAJOR_DIGITS))


def _binlog(source: Source, file: Column, *, with_row: bool) -> Column:
    """File number and position (MySQL, MariaDB). ``row`` restarts inside compressed transactions and is left out if
    there may be any.
    """
    pos = source["pos"]
    fits = file.between(0, _MAX_FILE) & pos.between(0, _MAX_POS)
    row = _hex(F.when(source["row"] >= 0, source["row"]).otherwise(0), 16) if with_row else F.lit("0" * 16)
    return F.when(fits, F.concat(_hex(file, 8), _hex(pos, 12), row))


def _postgres(source: Source, known: Column, is_snapshot: Column) -> Column:
    """The last commit LSN, then the record's own; without the first, the own one twice (Q4: never the maximum).

    Snapshot rows of any kind have no minor part: changes of a transaction that was open when the row was read may have
    an LSN below the one that an incremental snapshot states (Q5). The running maximum keeps earlier changes below it.
    """
    commit = known["commit"]
    lsn = F.when(source["lsn"] >= 0, source["lsn"])
    snapshot = _position_text(F.coalesce(commit, F.lit(0)), F.lit(0))
    return F.when(is_snapshot, snapshot).otherwise(_position_text(F.coalesce(commit, lsn), lsn))


def _sqlserver(source: Source) -> Column:
    digits = F.lower(F.regexp_replace(source["commit_lsn"], ":", ""))
    return F.when(digits.rlike("^[0-9a-f]{20}$"), F.concat(digits, F.lit("0" * 16)))


def _oracle(source: Source, is_snapshot: Column) -> Column:
    """The commit's SCN, invalid if the change has a later one (versions 1.x); for a snapshot row the SCN at which the
    snapshot was taken.
    """
    commit, own = (F.when(number > 0, number) for number in (_number(source["commit_scn"]), _number(source["scn"])))
    scn = F.when(is_snapshot, F.coalesce(commit, own)).when(own.isNull() | (commit >= own), commit)
    return _position_text(scn, F.lit(0))


def _position_text(major: Column, minor: Column) -> Column:
    return F.concat(_hex(major, 20), _hex(minor, 16))


def _number(text: Column) -> Column:
    """A non-negative number below 2^63 from decimal text, else NULL."""
    return F.when(text.rlike("^[0-9]{1,18}$"), text.cast("bigint"))


def _hex(number: Column, width: int) -> Column:
    """Lower-case hex, zero-padded; callers have checked the range, since ``lpad`` truncates silently."""
    return F.when(number >= 0, F.lpad(F.lower(F.hex(number.cast("bigint"))), width, "0"))
