"""The command line: ``replicator VERB``. Data is written to stdout, progress and messages to stderr.

Exit codes: 0 success; 1 a table stopped or a check failed, each is named; 2 usage or configuration error; 3 a service
is unreachable or another driver holds the lease, retry later; 130 interrupted; 141 stdout was closed by its reader; 143
terminated by SIGTERM.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from replicator import __version__, environment, failpoints
from replicator.cli import stdout
from replicator.cli.console import narrate, print_text
from replicator.cli.verbs import Verbs
from replicator.errors import ReplicatorError, Unreachable
from replicator.jvm import causes, interrupts
from replicator.s3 import access_error

app = typer.Typer(
    name="replicator",
    cls=Verbs,
    help="Keep a lakehouse and a serving Postgres equal to the database that Debezium watches.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_INTERRUPTED, _TERMINATED = 130, 143


@dataclass(frozen=True)
class Invocation:
    """Global options of the invocation; commands read them from ``context.obj``."""

    debug: bool = False


def _print_version(wanted: bool) -> None:
    if wanted:
        print_text(__version__)
        raise typer.Exit


@app.callback()
def replicator(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show Spark's log and full stack traces.")] = False,
) -> None:
    """Declare the global options. :func:`main` removes ``--debug`` from the arguments, since it is also accepted after
    the verb.
    """


def main(prepare: Callable[[], None] | None = None) -> None:
    """Run the program. A ReplicatorError is printed as one sentence and sets its exit code; any other exception is
    printed on one line and exits with 1. *prepare* is called first, and its errors are the program's.
    """
    termination = interrupts.Termination()
    try:
        _main(prepare)
    except SystemExit as end:
        if termination.came and end.code == _INTERRUPTED:
            narrate("terminated by SIGTERM", style="red")
            sys.exit(_TERMINATED)
        raise


def _main(prepare: Callable[[], None] | None) -> None:
    arguments = sys.argv[1:]
    invocation = Invocation(debug="--debug" in arguments)
    try:
        stdout.require_open()
        _arm(environment.failpoint())
        environment.bypass_proxy_for_localhost()
        if prepare is not None:
            prepare()
        with stdout.that_may_close():
            app([argument for argument in arguments if argument != "--debug"] or ["--help"], obj=invocation)
    except ReplicatorError as error:
        _report_error(f"error: {error}", error, debug=invocation.debug)
        sys.exit(error.exit_code)
    except Exception as error:  # noqa: BLE001 - the outermost handler: it prints a message instead of a traceback
        if interrupts.is_caused_by_interrupt(error):
            sys.exit(_INTERRUPTED)
        translated = _translate(error)
        if translated is not None:
            _report_error(f"error: {translated}", error, debug=invocation.debug)
            sys.exit(translated.exit_code)
        from replicator.stages import engine_errors

        hint = engine_errors.repair_hint(str(error)) or ("" if invocation.debug else "Add --debug for the whole trace.")
        _report_error(f"error: {causes.summarize(error)}. {hint}".rstrip(), error, debug=invocation.debug)
        sys.exit(1)


_NO_MEMORY = "If it ended with OutOfMemoryError, give it more memory: `spark: {spark.driver.memory: 4g}` in base.yaml."
_NO_FOLDER = (
    "It cannot write its temporary folder, set by `spark.local.dir` or $SPARK_LOCAL_DIRS, else /tmp: let the "
    "driver's user write there, or set another one."
)


def _translate(error: Exception) -> ReplicatorError | None:
    """Translate an exception of a library whose cause is known (an unreachable service, a JVM that exited, a store that
    denied access) into a ReplicatorError. Return None for any other.
    """
    code = causes.jvm_exit_code(error)
    if code is not None:
        from replicator.session import log_file
        from replicator.settings import cache_dir

        fix = _NO_FOLDER if code == causes.NO_TEMP_FOLDER else _NO_MEMORY
        return ReplicatorError("Spark's JVM has exited", where=str(log_file(cache_dir())), fix=fix)
    if causes.is_unreachable(error):
        what = f"a service does not answer: {causes.summarize(error)}"
        return Unreachable(what, fix="Check the service, then run again.")
    if causes.is_access_denied(error):
        return access_error(causes.summarize(error))
    return None


def _arm(text: str | None) -> None:
    """Arm the failpoint at which this process is to exit, and print its name."""
    if text is not None:
        failpoints.arm(failpoints.parse(text))
        narrate(f"failpoint {text} is armed", style="yellow")


def _report_error(sentence: str, error: Exception, *, debug: bool) -> None:
    if debug:
        narrate("".join(traceback.format_exception(error)).rstrip())
    narrate(sentence, style="red")
