"""Sessions and servers that tests share: one Spark for all, one local stack for all that need it."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from replicator.jvm import jvm_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from infra.local import Stack

# a busy machine is no reason to fail
hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")

for name in ("JAVA_TOOL_OPTIONS", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
    os.environ.pop(name, None)

ON_LINUX = "-XX:+UseTransparentHugePages -Djdk.lang.Process.launchMechanism=VFORK"
BUSY_JVM = f"-Xms3g -Xmn1g -XX:MetaspaceSize=256m {ON_LINUX if sys.platform == 'linux' else ''}"
"""For a JVM that is at work for minutes: a heap that need not grow, a third of it for what is soon forgotten, and room
for classes; and less ado for each of the small programs that Hadoop calls to change the mode of a local file.
"""
THOROUGH_JVM = (
    f"-XX:+UseSerialGC {jvm_options.LATE_COMPILATION} -XX:-DoEscapeAnalysis -XX:MaxInlineLevel=9 -XX:-UseSuperWord "
    "-XX:LoopOptsCount=5 -XX:LoopUnrollLimit=10 -XX:-PartialPeelLoop"
)
"""For one with more than MANY_TESTS before it: the thorough compiler pays after four minutes, for what is done most; of
its steps those are left out that cost most and win little here (decision 0030).
"""
MANY_TESTS = 300

WITH_OWN_SERVERS = ("test_local_stack.py", "test_hudi_northwind.py", "test_readme_commands.py")
"""Files of tests/stack that start a stack of their own."""

OF_CHECK = "not spark and not stack"
"""The tests of `make check`."""
ALL_MARKED = re.compile(r"^pytestmark = .*mark[.](?:spark|stack)\b", re.MULTILINE)

SHARED = Path(__file__).resolve().parents[2] / "shared"

_SOME = ("PARALLEL_RECORD_BYTES", "COMPILED_RECORD_BYTES")
_MEDIUM = (*_SOME, "SMALL_RECORD_BYTES", "SMALL_TOPIC_BYTES", "SMALL_MODEL_BYTES", "MAX_BROADCAST_KEYS")
WORK_AS = {"some": _SOME, "medium": _MEDIUM, "many": (*_MEDIUM, "LARGE_RECORD_BYTES", "SMALL_BYTES")}
"""What of `replicator.stages.tuning` is nothing, so that all work goes the way of larger work."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files whose tests are all marked are not loaded by `make check`, which runs none of them: half of the code."""
    if config.getoption("markexpr") != OF_CHECK or collection_path.suffix != ".py":
        return None
    return bool(ALL_MARKED.search(collection_path.read_text(encoding="utf-8"))) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting makes stays to the end: nobody looks for garbage in it, neither meanwhile nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """What tests/stack/test_living.py and tests/property/test_gold_laws.py play, and how busy the object store is in
    tests/stack/test_s3_faults.py.
    """
    parser.addoption("--workload-seed", type=int, default=20261121, help="the seed of the workload against databases")
    parser.addoption("--workload-size", type=int, default=30, help="its transactions per database")
    parser.addoption("--gold-seed", type=int, default=20261122, help="the seed of tests/property/test_gold_laws.py")
    parser.addoption("--gold-batches", type=int, default=12, help="how many batches it plays")
    parser.addoption("--work-as", choices=tuple(WORK_AS), help="all work goes the way of larger work")
    parser.addoption("--s3-faults", type=float, default=0.02, help="the share of requests to S3 that get no answer")


@pytest.fixture(scope="session", autouse=True)
def _sized(request: pytest.FixtureRequest) -> None:
    """``--work-as``: laws and recorded cases have to hold on the ways of larger work, too (`make test-sizes`)."""
    named = request.config.getoption("--work-as")
    if named is not None:
        from replicator.stages import tuning

        for least in WORK_AS[named]:
            setattr(tuning, least, 0)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[object]:
    """A local session as the product builds it; never stopped by a test. With Hudi where a test of this process needs
    it: its extension costs every query an eighth.
    """
    from replicator import session, settings

    with_hudi = any(item.get_closest_marker("hudi") for item in request.session.items)
    formats = ("delta", "hudi") if with_hudi and _may_run_hudi(request.config) else ("delta",)
    bare = settings.bare(None)
    quick = {"spark.master": "local[2]", "spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "2"}
    compiler = THOROUGH_JVM if len(request.session.items) > MANY_TESTS else jvm_options.SHORT_LIVED
    quick |= {"spark.sql.ui.explainMode": "simple", "spark.driver.extraJavaOptions": f"{compiler} {BUSY_JVM}"}
    made = session.session(bare.model_copy(update={"spark": quick, "formats": formats}))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def exact(spark: SparkSession) -> SparkSession:
    """A session of its own for a file's tests, as silver has it."""
    from tests.builders import exact_session

    return exact_session(spark)


@pytest.fixture(scope="session")
def recorded() -> Path:
    """The folder of recorded Debezium events; tests that need it are skipped where it is absent."""
    folder = SHARED / "recorded"
    if not folder.is_dir():
        pytest.skip("no recordings beside the project")
    return folder


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """A local stack with nothing started yet; what is started is stopped and removed afterwards."""
    from infra.local import Stack

    home = Path(tempfile.mkdtemp(prefix="replicator-stack-"))
    made = Stack(home)
    try:
        yield made
    finally:
        made.down()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def servers(stack: Stack) -> Stack:
    """The stack with all services running."""
    stack.up(owner=os.getpid())
    return stack


@pytest.fixture(scope="session")
def serving(stack: Stack) -> object:
    """Where PostgreSQL answers, which runs; of the stack's other services nothing is needed."""
    return stack.up(("postgres",), owner=os.getpid())


@pytest.fixture(scope="session")
def broker(stack: Stack) -> str:
    """Where Kafka answers, which runs; of the stack's other services nothing is needed."""
    return str(stack.up(("kafka",), owner=os.getpid()).kafka)


@pytest.fixture(scope="session")
def endpoints(servers: Stack) -> object:
    """Where its services answer."""
    return servers.endpoints()


def _is_of_hudi(nodeid: str) -> bool:
    """Whether a test needs Hudi, by its name: all that the scheduler, in another process, knows of a test."""
    return "hudi" in nodeid.lower()


def _together(nodeid: str) -> str:
    """What runs on one worker: a file, or all files that share the stack's servers, which then start once. Of a file's
    tests those of Hudi are by themselves.
    """
    file = nodeid.partition("::")[0]
    folder, _, name = file.rpartition("/")
    shared = folder if folder == "tests/stack" and name not in WITH_OWN_SERVERS else file
    return f"{shared} of Hudi" if _is_of_hudi(nodeid) else shared


def _waits(scope: str) -> bool:
    """Whether tests that run together spend most of their time on waiting for servers and drivers."""
    return scope.startswith("tests/stack")


def _may_run_hudi(config: pytest.Config) -> bool:
    """Whether tests of Hudi may come to this process: with ``--dist loadfile`` not to the second worker."""
    return bool(getattr(config, "workerinput", {}).get("hudi", True))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker whether tests of Hudi may come to it."""
    node.workerinput["hudi"] = node.config.getoption("dist") != "loadfile" or node.gateway.id != "gw1"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest come first, so that two workers end together: tests with servers, then what may take longest by its
    own word, then what has the most tests. Raises UsageError for one that is marked ``hudi`` under another name, and
    for one that has a session or servers without the mark.
    """
    for item in items:
        for fixture in {"spark", "stack"} & set(getattr(item, "fixturenames", ())):
            if not item.get_closest_marker(fixture):
                raise pytest.UsageError(f"{item.nodeid}: it has what is marked {fixture}, and is not marked so")
        if item.get_closest_marker("hudi") and not _is_of_hudi(item.nodeid):
            raise pytest.UsageError(
                f"{item.nodeid}: a test that is marked hudi has the word in its name, or in its file's"
            )
    tests = Counter(_together(item.nodeid) for item in items)

    def place(item: pytest.Item) -> tuple[bool, float, int]:
        patience = item.get_closest_marker("timeout")
        without_servers = item.get_closest_marker("stack") is None
        return without_servers, -patience.args[0] if patience else 0, -tests[_together(item.nodeid)]

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """``--dist loadfile`` hands out what runs together: that of Hudi to workers that have it, before all else; and
    beside files that wait for servers what keeps a processor busy, as long as there is some.
    """
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _together(nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            scope = self._next(node)
            if scope is None:
                node.shutdown()
                return
            self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

        def _next(self, node: Any) -> str | None:
            """What a worker is to do; None where nothing is left for it."""
            of_hudi = [scope for scope in self.workqueue if _is_of_hudi(scope)]
            fit = [scope for scope in self.workqueue if scope not in of_hudi]
            if node.workerinput["hudi"]:
                fit = of_hudi or fit
            beside = [work for other, work in self.assigned_work.items() if other is not node]
            if any(_waits(scope) and not all(done.values()) for work in beside for scope, done in work.items()):
                fit.sort(key=_waits)
            return next(iter(fit), None)

    return Together(config, log) if config.getoption("dist") == "loadfile" else None
