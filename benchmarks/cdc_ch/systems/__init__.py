"""The systems that are measured, each as its users write it, with its best documented settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.cdc_ch.contender import APPLY, COLLAPSE, GOLD, PUBLISH, REFINE, SOAK, Contender

OURS = "ours"
ABOUT = {
    OURS: "this project, by its own stages",
    "B0": "the pattern of many blogs: full from_json, row_number, one MERGE, Spark's and Delta's defaults",
    "B1": "the same code, tuned by settings alone",
    "B3": "Flink SQL, debezium-json from Kafka: into Paimon (T3), by JDBC into PostgreSQL (T5)",
    "B4": "delta-rs merge, fed by DuckDB through Arrow",
    "B5": "DuckDB alone, into its own file: an upper bound, no lakehouse",
    "rebuild": "a gold model computed in full and overwritten, in B1's session",
    "B7 jdbc": "Spark's JDBC writer into a staging table, then an upsert on the server",
    "B7 copy": "psycopg2: COPY into a temporary table, then an upsert",
    "B7 rows": "psycopg2: upserts of a thousand rows each",
    "B7 sink": "Debezium's JDBC sink on Kafka Connect, from a topic",
}
"""Every system by its name in reports."""

TRACKS = {
    OURS: (COLLAPSE, APPLY, REFINE, GOLD, PUBLISH, SOAK),
    "B0": (COLLAPSE, APPLY, REFINE, SOAK),
    "B1": (COLLAPSE, APPLY, REFINE, SOAK),
    "B3": (REFINE, PUBLISH),
    "B4": (APPLY, REFINE, SOAK),
    "B5": (COLLAPSE, APPLY, REFINE, SOAK),
    "rebuild": (GOLD,),
    "B7 jdbc": (PUBLISH,),
    "B7 copy": (PUBLISH,),
    "B7 rows": (PUBLISH,),
    "B7 sink": (PUBLISH,),
}
"""What each is measured in."""


def contender(system: str, track: str, work: Path, heap: str) -> Contender:
    """A system in a track; libraries are imported in its own process only. JVMs get the ``heap``."""
    return _MAKERS[system](track, work, heap)


def _ours(track: str, work: Path, heap: str) -> Contender:
    from benchmarks.cdc_ch.systems import ours, postgres  # noqa: PLC0415

    if track == PUBLISH:
        return postgres.made(work, heap, OURS)
    return ours.made(track, work, heap)


def _blog(track: str, work: Path, heap: str) -> Contender:
    from benchmarks.cdc_ch.systems import blog  # noqa: PLC0415

    return blog.made(track, work, heap, tuned=False)


def _tuned(track: str, work: Path, heap: str) -> Contender:
    from benchmarks.cdc_ch.systems import blog  # noqa: PLC0415

    return blog.made(track, work, heap, tuned=True)


def _delta_rs(track: str, work: Path, heap: str) -> Contender:  # noqa: ARG001 - no JVM
    from benchmarks.cdc_ch.systems import delta_rs  # noqa: PLC0415

    return delta_rs.made(track)


def _duck(track: str, work: Path, heap: str) -> Contender:  # noqa: ARG001 - no JVM
    from benchmarks.cdc_ch.systems import duck  # noqa: PLC0415

    return duck.made(track)


def _flink(track: str, work: Path, heap: str) -> Contender:
    from benchmarks.cdc_ch.systems import flink  # noqa: PLC0415

    return flink.made(track, work, heap)


def _sink(track: str, work: Path, heap: str) -> Contender:  # noqa: ARG001 - there is one
    from benchmarks.cdc_ch.systems import sink  # noqa: PLC0415

    return sink.made(work, heap)


def _postgres(kind: str) -> Callable[[str, Path, str], Contender]:
    def made(track: str, work: Path, heap: str) -> Contender:  # noqa: ARG001 - there is one
        from benchmarks.cdc_ch.systems import postgres  # noqa: PLC0415

        return postgres.made(work, heap, kind)

    return made


_MAKERS: dict[str, Callable[[str, Path, str], Contender]] = {
    OURS: _ours,
    "B0": _blog,
    "B1": _tuned,
    "B3": _flink,
    "B4": _delta_rs,
    "B5": _duck,
    "rebuild": _tuned,
    "B7 jdbc": _postgres("jdbc"),
    "B7 copy": _postgres("copy"),
    "B7 rows": _postgres("rows"),
    "B7 sink": _sink,
}
