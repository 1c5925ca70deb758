"""The systems that are measured, each as its users write it, with its best documented settings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.cdc_ch.contender import APPLY, COLLAPSE, GOLD, PUBLISH, REFINE, SOAK, Contender

OURS = "ours"
ABOUT = {
    OURS: "this project, by its own stages",
    "B0": "the pattern of many blogs: full from_json, row_number, one MERGE, Spark's and Delta's defaults",
    "B1": "the same code, tuned by settings alone",
    "B3": "Flink SQL, debezium-json from Kafka: into Paimon (T3), by JDBC into PostgreSQL (T5)",
    "B2 mor": "Hudi's own Spark writer: merge on read, record index; the parse is B1's",
    "B2 cow": "the same, copy on write, bloom filters",
    "B2 bucket": "the same, merge on read, bucket index",
    "B4": "delta-rs merge, fed by DuckDB through Arrow",
    "B5": "DuckDB alone, into its own file: an upper bound, no lakehouse",
    "B8": "dlt's merge into Delta, fed as B4 is",
    "ours marks": "this project, a gold model with deletion_vectors",
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
    "B2 mor": (APPLY, REFINE, SOAK),
    "B2 cow": (APPLY, REFINE, SOAK),
    "B2 bucket": (APPLY, REFINE, SOAK),
    "B4": (APPLY, REFINE, SOAK),
    "B5": (COLLAPSE, APPLY, REFINE, SOAK),
    "B8": (REFINE, SOAK),
    "ours marks": (GOLD,),
    "rebuild": (GOLD,),
    "B7 jdbc": (PUBLISH,),
    "B7 copy": (PUBLISH,),
    "B7 rows": (PUBLISH,),
    "B7 sink": (PUBLISH,),
}
"""What each is measured in."""


OWN = {"B8": "dlt"}
"""What runs in the Python of an environment of its own (see ``environments``)."""


def python(system: str) -> str:
    """The interpreter that it runs in; whether that is there, :func:`absence` tells."""
    return str(_environment(system)) if system in OWN else sys.executable


def absence(system: str) -> str | None:
    """Why it cannot start; None where it can."""
    from replicator.errors import ReplicatorError  # noqa: PLC0415 - not in such an environment

    try:
        python(system)
    except ReplicatorError as missing:
        return str(missing)
    return None


def _environment(system: str) -> Path:
    from benchmarks.cdc_ch import environments  # noqa: PLC0415 - not in such an environment

    return environments.made(OWN[system])


def contender(system: str, track: str, work: Path, heap: str) -> Contender:
    """A system in a track; libraries are imported in its own process only. JVMs get the ``heap``."""
    return _MAKERS[system](track, work, heap)


def _ours(track: str, work: Path, heap: str) -> Contender:
    from benchmarks.cdc_ch.systems import ours, postgres  # noqa: PLC0415

    if track == PUBLISH:
        return postgres.made(work, heap, OURS)
    return ours.made(track, work, heap)


def _marking(track: str, work: Path, heap: str) -> Contender:
    from benchmarks.cdc_ch.systems import ours  # noqa: PLC0415

    return ours.made(track, work, heap, deletion_vectors=True)


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


def _dlt(track: str, work: Path, heap: str) -> Contender:  # noqa: ARG001 - one track, no JVM
    from benchmarks.cdc_ch.systems import dlt_delta  # noqa: PLC0415

    return dlt_delta.made()


def _hudi(kind: str) -> Callable[[str, Path, str], Contender]:
    def made(track: str, work: Path, heap: str) -> Contender:  # noqa: ARG001 - it keeps nothing there
        from benchmarks.cdc_ch.systems import hudi  # noqa: PLC0415

        return hudi.made(track, heap, kind)

    return made


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
    "B2 mor": _hudi("mor"),
    "B2 cow": _hudi("cow"),
    "B2 bucket": _hudi("bucket"),
    "B4": _delta_rs,
    "B5": _duck,
    "B8": _dlt,
    "ours marks": _marking,
    "rebuild": _tuned,
    "B7 jdbc": _postgres("jdbc"),
    "B7 copy": _postgres("copy"),
    "B7 rows": _postgres("rows"),
    "B7 sink": _sink,
}
