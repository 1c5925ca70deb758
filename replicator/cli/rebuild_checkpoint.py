"""``replicator rebuild --checkpoint``: show, or write, the checkpoint from which a source resumes reading Kafka."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from replicator.cli import console

if TYPE_CHECKING:
    from collections.abc import Mapping

    from replicator.offsets import TopicPartition
    from replicator.operate.rebuilding.start_offsets import PartitionStart
    from replicator.settings import Settings

_COLUMNS = ("topic", "partition", "read before", "in kafka", "starts at", "missing", "why")


def rebuild_checkpoint(
    debug: bool,
    settings: Settings,
    source: str,
    offsets: Mapping[TopicPartition, int],
    *,
    write: bool,
    accept_gap: bool,
    as_json: bool,
) -> None:
    """Print where each partition would start; with ``write``, write the checkpoint. Gaps require ``accept_gap``."""
    from replicator import assemble
    from replicator.lake import Lake
    from replicator.operate import new_checkpoint
    from replicator.operate.lock import exclusive
    from replicator.session import session

    streaming = assemble.streaming_source(settings, source)
    with exclusive(Lake(settings.lake.root), ("bronze",) if write else (), assemble.lease_options(settings)) as fence:
        spark = session(settings, debug=debug, brief=True)
        stopped = assemble.stopped_source(spark, settings, streaming, fence)
        plan = new_checkpoint.build_plan(spark, stopped, offsets)
        _show(plan.starts, as_json=as_json)
        backup = new_checkpoint.carry_out(spark, stopped, plan, accept_gap=accept_gap) if write else None
    if not write:
        needs = "--yes and --accept-gap" if plan.unaccepted and not accept_gap else "--yes"
        console.narrate(f"Nothing was written: add {needs} to write it.", style="yellow")
        return
    where = "There was no old one." if backup is None else f"The old one was moved to {backup}."
    console.narrate(f"{source} continues there with the next run. {where}")


def _show(starts: tuple[PartitionStart, ...], *, as_json: bool) -> None:
    if as_json:
        console.print_json([_to_json(each) for each in starts])
    elif starts:
        console.print_table(_COLUMNS, [_row(each) for each in starts])
    else:
        console.narrate("Kafka has no topic of the source.", style="yellow")


def _to_json(start: PartitionStart) -> dict[str, Any]:
    gap = start.gap
    return {**asdict(start), "gap": None if gap is None else {"from": gap.first, "to": gap.last}}


def _row(start: PartitionStart) -> list[str]:
    gap, read = start.gap, "nothing" if start.read is None else str(start.read)
    missing = "nothing" if gap is None else f"{gap.first} to {gap.last}"
    available = f"{start.first} to {start.end - 1}" if start.first < start.end else "nothing"
    return [start.topic, str(start.partition), read, available, str(start.start), missing, start.why]
