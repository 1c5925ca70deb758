"""``replicator rebuild``: recompute tables and models from their inputs and write the differences, or recreate a Kafka
checkpoint from bronze.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from replicator.cli import console, options, rebuild_checkpoint
from replicator.errors import ConfigError, exit_code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from replicator.operate.rebuild import RebuildOptions
    from replicator.operate.rebuilding.rebuild_result import RebuildResult
    from replicator.settings import Settings
    from replicator.spec import SourceSpec

_COLUMNS = ("table", "rows", "added", "changed", "gone", "of deleted", "skipped", "dead letters", "seconds", "done")
_DRY_RUN_WORDS = {"written": "would be written", "replaced": "would be replaced"}


def rebuild(
    context: typer.Context,
    wanted: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Argument(
            help="Tables of silver: <database or schema>.<table>, or its last part; and models.",
            metavar="[TABLE|MODEL]...",
        ),
    ] = None,
    column: Annotated[
        Optional[str],  # noqa: UP045 - as above
        typer.Option(
            "--column", help="Rebuild only this column of one table; the others stay unchanged.", metavar="NAME"
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every table, then every model.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the differences and write nothing.")] = False,
    accept_gap: Annotated[
        bool,
        typer.Option(
            "--accept-gap", help="Accept losing what bronze no longer has; with --checkpoint, what Kafka no longer has."
        ),
    ] = False,
    checkpoint: Annotated[
        Optional[str],  # noqa: UP045 - as above
        typer.Option(
            "--checkpoint",
            help="Instead: recreate this source's Kafka checkpoint from bronze.",
            metavar="SOURCE",
        ),
    ] = None,
    starts: Annotated[
        Optional[list[str]],  # noqa: UP045 - as above
        typer.Option(
            "--from", help="With --checkpoint: continue a partition at a later offset.", metavar="TOPIC:PART:OFFSET"
        ),
    ] = None,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="With --checkpoint: do it. Without it, only show where each partition would start."),
    ] = False,
    source: options.SourceName = None,
    declare: options.Declare = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Rebuild tables from all of bronze, and models from silver; what differs is written in one commit.

    With --checkpoint SOURCE: recreate a damaged, missing or older checkpoint of bronze from the records in bronze.
    """
    _refuse_mixture(checkpoint, (wanted, column, source, declare, everything), (starts, yes))
    if checkpoint is not None:
        rebuild_checkpoint.rebuild_checkpoint(
            options.is_debug(context),
            options.settings(env, conf, lake),
            checkpoint,
            options.parse_offsets(starts or []),
            write=yes and not dry_run,
            accept_gap=accept_gap,
            as_json=as_json,
        )
        return
    if bool(wanted) == everything:
        raise ConfigError("no table or model to rebuild is given", fix="Name tables and models, or give --all alone.")
    from replicator.operate.rebuild import RebuildOptions

    declared = options.load_declarations(declare, lake)
    settings = options.settings(env, conf, lake).with_formats_of(declared)
    how = RebuildOptions(column, dry_run, accept_gap)
    results = _rebuild(context, settings, (source, declared), None if everything else wanted, how)
    _show([_to_row(each, dry=dry_run) for each in results], dry=dry_run, as_json=as_json)
    if code := exit_code([each.error for each in results if each.error is not None]):
        raise typer.Exit(code)


def _rebuild(
    context: typer.Context,
    settings: Settings,
    source_options: tuple[str | None, SourceSpec | None],
    wanted: Sequence[str] | None,
    mode: RebuildOptions,
) -> list[RebuildResult]:
    """Rebuild the selected tables and models (None: all) while no run writes them, and return the result of each; each
    is printed as it finishes. ``source_options`` limits them to one source, and has the declarations of a ``--declare``
    file.
    """
    from replicator import assemble
    from replicator.operate import rebuild_all
    from replicator.operate.lock import exclusive

    results: list[RebuildResult] = []
    with exclusive(options.existing_lake(settings), ("silver", "gold"), assemble.lease_options(settings)) as fence:
        spark, sources = options.open_sources(context, settings, *source_options, fence=fence)
        selection = rebuild_all.resolve_selection(spark, sources, settings.models, wanted)
        for each in rebuild_all.carry_out(spark, selection, assemble.warehouse(spark, settings, fence), mode):
            results.append(each)
            _narrate(each)
    return results


def _show(rows: Sequence[Mapping[str, Any]], *, dry: bool, as_json: bool) -> None:
    """Print one line per table and model."""
    if as_json:
        console.print_json(rows)
    elif rows:
        cells = [[row[column.replace(" ", "_")] for column in _COLUMNS] for row in rows]
        console.print_table(_COLUMNS, [[str(cell) for cell in row] for row in cells])
    else:
        console.narrate("There is nothing to rebuild yet.", style="yellow")
    if dry and rows:
        console.narrate("Nothing was written: this was a dry run.", style="yellow")


def _refuse_mixture(checkpoint: str | None, of_tables: tuple[object, ...], of_checkpoint: tuple[object, ...]) -> None:
    """Raise ConfigError where options of tables and options of ``--checkpoint`` are combined."""
    if checkpoint is not None and any(of_tables):
        raise ConfigError(
            "--checkpoint cannot be combined with tables or their options", fix="Omit tables and their options."
        )
    if checkpoint is None and any(of_checkpoint):
        raise ConfigError("--from and --yes are for --checkpoint SOURCE", fix="Leave them out.")


def _to_row(each: RebuildResult, *, dry: bool) -> dict[str, Any]:
    word = _DRY_RUN_WORDS.get(each.verdict, each.verdict) if dry else each.verdict
    if 0 < each.of_deleted == each.added + each.changed + each.gone and not each.columns:
        word += " (deleted rows alone)"
    return {
        "table": each.table,
        "rows": each.rows,
        "added": each.added,
        "changed": each.changed,
        "gone": each.gone,
        "of_deleted": each.of_deleted,
        "skipped": each.skipped,
        "dead_letters": each.letters,
        "columns": list(each.columns),
        "named": list(each.named),
        "warnings": list(each.warnings),
        "seconds": round(each.seconds, 1),
        "done": "stopped" if each.error is not None else word,
        "error": None if each.error is None else str(each.error),
    }


def _narrate(each: RebuildResult) -> None:
    if each.error is not None:
        console.narrate(f"{each.table}: {each.error}", style="red")
    for warning in each.warnings:
        console.narrate(f"{each.table}: {warning}", style="yellow")
    for sentence in (*each.columns, *each.named):
        console.narrate(f"{each.table}: {sentence}", style="dim")
