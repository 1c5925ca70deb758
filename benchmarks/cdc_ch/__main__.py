"""The benchmark CDC-CH: ``python -m benchmarks.cdc_ch run --size S`` measures and writes a report.

``flow`` measures T6, end to end, and puts it into the report. ``data`` only makes the inputs, and with ``--lines``
writes the events as ``replicator run --recorded`` reads them; ``page`` draws the page of a report's JSON once more.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.cdc_ch import dataset, flow, machine, page, plans, report, runner
from benchmarks.cdc_ch.contender import APPLY, COLLAPSE, GOLD, PUBLISH, REFINE, SOAK
from benchmarks.cdc_ch.systems import ABOUT, TRACKS

TRACK_NAMES = (COLLAPSE, APPLY, REFINE, GOLD, PUBLISH, SOAK)
HERE = Path(__file__).resolve().parents[2]


def main() -> None:
    """Parse and do."""
    parser = _parser()
    told = parser.parse_args()
    if told.do == "page" and told.report is None:
        parser.error("page needs --report, the report.json to draw")
    told.data = told.data.resolve()
    told.data.mkdir(parents=True, exist_ok=True)
    if told.do == "data":
        _data(told)
    elif told.do == "page":
        _draw(told.report)
    elif told.do == "flow":
        _flow(told)
    else:
        _run(told)


def _run(told: argparse.Namespace) -> None:
    plan = plans.PLANS[told.size]
    plan = plans.shortened(plan, told.warmups, told.repeats)
    cases = [case for case in plans.cases(plan, told.tracks, told.data, _tell) if told.only in case.name]
    work = Path(tempfile.mkdtemp(prefix="cdc-ch-", dir=told.data))
    begun = _empty(told) | {"plan": plans.value(plan), "cases": [case.value() for case in cases]}
    made = report.with_flows(begun, report.stored(told.out))
    try:
        for each in runner.measured(cases, told.systems, plan, work, told.heap, _tell):
            if isinstance(each, runner.Begun):
                made["settings"][each.track] = each.about
            else:
                made["runs"].append(each.value())
            report.write(made, told.out)
    finally:
        report.keep_logs(work, told.data / "logs")
        shutil.rmtree(work, ignore_errors=True)
    _draw(told.out / "report.json")
    wrong = sorted({run["system"] for run in made["runs"] if run["problem"]})
    if wrong:
        raise SystemExit(f"without a right result in some case: {', '.join(wrong)}")


def _flow(told: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is stopped on the way out
    head = _empty(told)
    made, wrong = report.stored(told.out) or head, []
    for each in flow.run(told.rates, told.seconds, told.warm, told.size, flow.Given(told.data, told.heap, _tell)):
        made = report.with_flow(made, head, each.value())
        report.write(made, told.out)
        wrong += [f"{each.rate}"] if each.problem else []
    _draw(told.out / "report.json")
    if wrong:
        raise SystemExit(f"not all came to the end: {', '.join(wrong)} a second")


def _empty(told: argparse.Namespace) -> dict[str, Any]:
    about = {"size": told.size, "heap": told.heap, **machine.described(), "plan": plans.value(plans.PLANS[told.size])}
    return about | {"cases": [], "about": ABOUT, "settings": {}, "runs": [], "flows": []}


def _draw(file: Path) -> None:
    made = json.loads(file.read_text())
    page.write(made, file.parent)
    sys.stdout.write(page.text(made))


def _data(told: argparse.Namespace) -> None:
    made = dataset.made(plans.PLANS[told.size].trade, told.data)
    sys.stdout.write(f"{made.folder}\n")
    if told.lines:
        with told.lines.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in dataset.lines(made))


def _tell(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cdc_ch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("do", choices=("run", "flow", "data", "page"))
    parser.add_argument("--size", choices=tuple(plans.PLANS), default="S", help="S: minutes; M, L: for a report")
    parser.add_argument("--tracks", nargs="+", choices=TRACK_NAMES, default=list(TRACK_NAMES[:-1]), help="all but T7")
    parser.add_argument("--systems", nargs="+", choices=tuple(TRACKS), default=list(TRACKS))
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name has this in it")
    parser.add_argument("--warmups", type=int, help="runs of each case that do not count; as the size says")
    parser.add_argument("--repeats", type=int, help="runs that do")
    parser.add_argument("--heap", default="4g", help="of each JVM: those of all systems on Spark stay alive")
    parser.add_argument("--data", type=Path, default=HERE / ".cache" / "cdc-ch", help="where inputs are kept")
    parser.add_argument("--out", type=Path, default=HERE / ".cache" / "cdc-ch" / "report", help="of the report")
    parser.add_argument("--rates", nargs="+", type=int, default=[1_000, 5_000, 22_400], help="of flow: events a second")
    parser.add_argument("--seconds", type=int, default=60, help="of flow: how long events are sent")
    parser.add_argument("--warm", type=int, default=15, help="of flow: the first seconds, which do not count")
    parser.add_argument("--lines", type=Path, help="with `data`: write the events as JSON lines, too")
    parser.add_argument("--report", type=Path, help="with `page`: the report.json")
    return parser


if __name__ == "__main__":
    main()
