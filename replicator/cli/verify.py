"""``replicator verify``: compare tables that must be equal."""

from __future__ import annotations

from dataclasses import asdict, replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from replicator.cli import advice, console, options
from replicator.cli.best_effort import write_best_effort

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pyspark.sql import SparkSession

    from replicator.operate.verify import Comparison, Verdict, VerifyInputs, VerifyOptions
    from replicator.operate.verify.marks import Mark, Marks
    from replicator.spec import SourceSpec

_COLUMNS = ("layer", "table", "against", "rows", "missing", "extra", "differing", "in flight", "behind", "verdict")
_MARK_COLUMNS = ("layer", "table", "against", "verified at", "position", "rows", "checksum")


class Layer(str, Enum):
    """The comparisons by layer."""

    source = "source"
    twins = "twins"
    gold = "gold"
    target = "target"


def verify(
    context: typer.Context,
    wanted: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Argument(
            help="Only these tables (<database or schema>.<table>, or its last part) and models. Default: all.",
            metavar="[TABLE|MODEL]...",
        ),
    ] = None,
    layer: Annotated[
        Optional[list[Layer]],  # noqa: UP045 - as above
        typer.Option(
            help="Only this comparison: source and silver, silver and twins, silver and gold, gold and target."
        ),
    ] = None,
    against: Annotated[
        Optional[str],  # noqa: UP045 - as above
        typer.Option(help="Only what is compared with this format, target or kind of database.", metavar="NAME"),
    ] = None,
    sample: Annotated[
        float,
        typer.Option(help="Compare only this share of the keys: the end of each range.", min=0.001, max=1.0),
    ] = 1.0,
    wait: Annotated[
        float, typer.Option(help="Recheck differences from a live source for this long.", metavar="SECONDS", min=0)
    ] = 10.0,
    show: Annotated[
        bool, typer.Option("--show", help="Compare nothing; print when each table was last found equal.")
    ] = False,
    source: options.SourceName = None,
    declare: options.Declare = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Compare the contents of every layer with the one before it, by checksums and down to keys and columns; exit code
    1 if they differ, 2 if a database refuses the login or there is no lake, 3 if one is unreachable.
    """
    from replicator import assemble
    from replicator.operate import verify as operate

    declared = options.load_declarations(declare, lake)
    settings = options.settings(env, conf, lake).with_formats_of(declared)
    spark, _ = options.open_sources(context, settings, source, declared)
    checks, marks = assemble.verify_inputs(spark, settings, declared), assemble.verification_marks(spark, settings)
    checks = replace(checks, sources=options.filter_by_source(checks.sources, source))
    layers = operate.LAYERS if not layer else [each.value for each in layer]
    if show:
        only = {operate.resolve_name(spark, checks, name) for name in wanted} if wanted else None
        _show([each for each in marks.every() if each.matches(layers, only, against, source)], as_json=as_json)
        return
    comparisons = operate.select_comparisons(spark, checks, wanted or None, layers, against)
    if lake is None and operate.SOURCE in layers:
        _warn_not_compared(checks, {each.name for each in settings.sources})
    verdicts = _compare(spark, comparisons, operate.VerifyOptions(sample, wait), marks)
    if not verdicts:
        options.existing_lake(settings)
    _print(verdicts, as_json=as_json)
    _advise(verdicts)
    _exit(verdicts)


def _compare(
    spark: SparkSession, comparisons: Sequence[Comparison], selection: VerifyOptions, marks: Marks
) -> list[Verdict]:
    """Return all verdicts; each is printed as soon as it is known."""
    from replicator.operate import verify as operate

    verdicts: list[Verdict] = []

    def sizes() -> list[int]:
        return [int(size * selection.share) for size in operate.sizes(spark, comparisons)]

    with console.row_progress("comparing", sizes) as work:
        for verdict in operate.verify(
            spark, comparisons, replace(selection, advance=work.advance), _best_effort(marks.note)
        ):
            work.finish()
            verdicts.append(verdict)
            _narrate(verdict)
    return verdicts


def _best_effort(note: Callable[[Verdict], None]) -> Callable[[Verdict], None]:
    """Wrap ``note`` so that a mark that cannot be written does not fail the verification."""

    def kept(verdict: Verdict) -> None:
        write_best_effort(
            lambda: note(verdict), f"{verdict.table} ({verdict.against}): `verify --show` will not show this"
        )

    return kept


def _print(verdicts: Sequence[Verdict], *, as_json: bool) -> None:
    rows = [_to_row(verdict) for verdict in verdicts]
    if as_json:
        console.print_json(rows)
    elif rows:
        console.print_table(_COLUMNS, [[str(row[column.replace(" ", "_")]) for column in _COLUMNS] for row in rows])
    else:
        console.narrate("There is nothing to compare.", style="yellow")


def _advise(verdicts: Sequence[Verdict]) -> None:
    """Name the command that makes the differing tables of targets equal to gold."""
    models = [
        each.table for each in verdicts if each.layer == Layer.target and each.error is None and not each.is_equal
    ]
    if models:
        republish = advice.command("republish", *dict.fromkeys(models))
        console.narrate(f"If gold is right, {republish} makes the target equal to it.", style="yellow")


def _exit(verdicts: Sequence[Verdict]) -> None:
    """Exit with the code of all verdicts: 1 if any table differs, else the code of the errors; return where there is
    none.
    """
    from replicator.errors import exit_code

    differ = any(not verdict.is_equal and verdict.error is None for verdict in verdicts)
    code = 1 if differ else exit_code([verdict.error for verdict in verdicts if verdict.error is not None])
    if code:
        raise typer.Exit(code)


def _warn_not_compared(checks: VerifyInputs, described: Collection[str]) -> None:
    for each in checks.sources:
        if each.source.name not in checks.databases:
            why, fix = _why_not_compared(each.source, is_described=each.source.name in described)
            other = "`replicator rebuild --all --dry-run` compares it with bronze"
            message = f"{each.source.name}: {why}, so silver is not compared with it{fix}; {other}."
            console.narrate(message, style="yellow")
            continue
        for name in (declared.table for declared in each.source.tables if declared.append_only):
            why = "its rows cannot be matched with rows of the source"
            table = f"{each.source.name}/{name}"
            other = f"{advice.command('rebuild', table, '--dry-run')} compares it with bronze"
            console.narrate(f"{table} is append-only: {why}; {other}.", style="yellow")


def _why_not_compared(source: SourceSpec, *, is_described: bool) -> tuple[str, str]:
    """Return why a source is not compared, and how to fix it; '' where it cannot be fixed."""
    if source.database is not None:
        return f"{source.database.kind} cannot be queried", ""
    ask = "the login (docs/databases.md)"
    if is_described:
        return "its file has no `database`", f": add {ask}"
    return (
        "it has no file",
        f": write conf/sources/{source.name}.yaml with `name: {source.name}` and, as `database`, {ask}",
    )


def _show(marks: Sequence[Mark], *, as_json: bool) -> None:
    rows = [asdict(mark) for mark in marks]
    if as_json:
        console.print_json(rows)
    elif not rows:
        console.narrate("No comparison has found anything equal yet.")
    else:
        console.print_table(
            _MARK_COLUMNS, [[str(row[column.replace(" ", "_")]) for column in _MARK_COLUMNS] for row in rows]
        )


def _to_row(verdict: Verdict) -> dict[str, Any]:
    word = "equal" if verdict.is_equal else "unknown" if verdict.error is not None else "different"
    if verdict.share < 1 and verdict.error is None:
        word += f" (of about {verdict.share:.1%} of the keys)"
    error = None if verdict.error is None else str(verdict.error)
    return {**vars(verdict), "error": error, "verdict": word}


def _narrate(verdict: Verdict) -> None:
    place = f"{verdict.table} ({verdict.against})"
    if verdict.error is not None:
        console.narrate(f"{place}: {verdict.error}", style="red")
    else:
        console.narrate(f"{place}: {verdict.rows:,} rows compared, {_to_row(verdict)['verdict']}")
    for column in verdict.not_compared:
        console.narrate(f"{place}: not compared: {column}", style="yellow")
    for column in verdict.columns:
        console.narrate(f"{place}: the column {column}", style="red")
    for key in verdict.named:
        console.narrate(f"{place}: {key}", style="red")
    for keys in verdict.ranges if len(verdict.named) < verdict.missing + verdict.extra + verdict.differing else ():
        console.narrate(f"{place}: differs in {keys}", style="red")
