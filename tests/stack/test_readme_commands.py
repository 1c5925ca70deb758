"""Every command of README.md is run, in its order, as a reader would copy it into a shell; and those of docs/tables.md
and docs/operate.md that go on with the README's events.

Left out are ``make test``, which would run itself, and what a sentence only mentions.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import takewhile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from infra import lab
from infra.demo import warehouse
from infra.local import Stack
from infra.local.endpoints import Endpoints
from infra.sources.classicmodels.load import log_in
from infra.truth import check_star
from replicator import settings
from replicator.jvm import class_archive, spark_home
from replicator.jvm.java import java_home
from replicator.jvm.jvm_options import SHORT_LIVED
from tests import readme
from tests.cli import said
from tests.kafka import consumed, create
from tests.objects import known_store

pytestmark = [pytest.mark.stack, pytest.mark.spark, pytest.mark.timeout(3600)]  # most of the page in a few tests

PARTS = ("Makefile", "README.md", "conf", "infra", "jobs", "pyproject.toml", "replicator", "requirements")
ACTIVATE = [". .venv/bin/activate"]
STACK = [*ACTIVATE, 'eval "$(python -m infra.local env)"']
FILL = list(takewhile(lambda command: not command.startswith("replicator"), readme.commands("The local stack")))

FEED = "topic: cdm.customers\ntable: dim_customers\nselect: {id: customer_key, name: customer_name}\n"
"""A feed as docs/canonical.md describes one."""

Shell = Callable[[Sequence[str]], str]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout with its environment: what a reader has after ``git clone`` and ``make env``."""
    copy = tmp_path_factory.mktemp("checkout")
    for part in PARTS:
        at = readme.ROOT / part
        (shutil.copytree if at.is_dir() else shutil.copy2)(at, copy / part)
    for file in (copy / "pyproject.toml", *(copy / "requirements").iterdir()):
        os.utime(file, (0, 0))  # else make might build the environment anew, which then had the copy's package
    (copy / ".venv").symlink_to(sys.prefix)
    return copy


@pytest.fixture(scope="module")
def shell(checkout: Path) -> Shell:
    """Runs commands in one bash that stops at the first failure; gives back what they printed."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "REPLICATOR_LAKE", "SPARK"))}
    # spark-submit starts its JVM before any configuration of ours is read
    archive = class_archive.archive_path(java_home(os.environ.get("JAVA_HOME")))
    variables["SPARK_SUBMIT_OPTS"] = f"{SHORT_LIVED} {class_archive.java_options(SHORT_LIVED, archive)}"
    variables["SPARK_HOME"] = str(spark_home.bundled())

    def run(commands: Sequence[str]) -> str:
        script = "set -eo pipefail\n" + "\n".join(commands) + "\n"
        done = subprocess.run(
            ["bash", "-c", script], cwd=checkout, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    return run


@pytest.fixture(scope="module")
def stack(shell: Shell, checkout: Path) -> Iterator[Endpoints]:
    """The servers of "The local stack", the source filled: its commands up to the first ``replicator``. The last one
    stops them.
    """
    *_, last = readme.commands("The local stack")
    assert last == "make stack-down"
    try:
        shell([*ACTIVATE, *FILL])
        yield Stack(checkout / ".cache" / "stack").endpoints()
    finally:
        shell([*ACTIVATE, last])


def typed(shell: Shell, commands: Sequence[str]) -> str:
    """What commands print, one after the other; two dozen of ours share the JVM of the tests instead of starting their
    own.
    """
    return "".join(
        said(*shlex.split(each)[1:]) if each.startswith("replicator ") else shell([*ACTIVATE, each])
        for each in commands
    )


def test_the_demo_ends_equal_and_its_lake_answers(
    spark: SparkSession, shell: Shell, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``make demo``, then the queries of "Ask the lake", against what it left."""
    assert spark
    monkeypatch.chdir(checkout)
    demo, test, *environment = readme.commands("Two commands")
    assert (demo, test) == ("make demo", "make test")
    told = shell([demo])
    assert told.count("equal") >= 14
    shell(environment)
    answers = typed(shell, readme.commands("Ask the lake"))
    assert "Vintage Cars" in answers
    assert "order_key" in answers


def test_your_own_events_become_tables_without_any_configuration(
    spark: SparkSession, shell: Shell, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four records: two rows and a dead letter, which the commands of docs/operate.md show and try again; and an epoch
    for what may follow.
    """
    assert spark
    monkeypatch.chdir(checkout)
    (checkout / "declare.yaml").write_text(readme.file("declare.yaml"), encoding="utf-8")
    sections = (
        ("README.md", "Your own captured events"),
        ("docs/tables.md", "When the source's columns change"),
        ("docs/operate.md", "When a source starts anew"),
        ("docs/operate.md", "Make a table again"),
        ("README.md", "Where everything lies"),
        ("docs/operate.md", "Dead letters"),
        ("docs/operate.md", "Why is a row as it is?"),
        ("docs/operate.md", "A page for the wall"),
        ("README.md", "A project of your own"),
    )
    told = typed(shell, [command for page, section in sections for command in readme.commands(section, page)])
    assert "bronze ends here" in told
    assert told.count("equal") == 2
    assert "decimal(10,2)" in told
    assert "19.90" in told
    assert "12.50" not in told
    assert "Declare the table's `keys`" in told
    assert "sets the row, until shop.sales.orders/0/2" in told
    assert "key_missing" in told
    assert "report.html\n" in told
    assert "sources: shop\n" in told
    assert "key_missing" in (checkout / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def submitted(stack: Endpoints, shell: Shell) -> tuple[Endpoints, str]:
    """The commands of "The stages with spark-submit", run, and what they printed."""
    return stack, shell([*STACK, *readme.commands("The stages with spark-submit")])


def test_the_stages_run_with_spark_submit(submitted: tuple[Endpoints, str]) -> None:
    """All four, from a clean shell with the lake on S3: then Postgres equals the source by content."""
    servers, told = submitted
    for stage in ("bronze", "silver", "gold", "publish"):
        assert stage in told
    with closing(log_in(servers.mariadb)) as source, closing(warehouse.connect(servers.postgres)) as target:
        found = check_star(source, target)
    assert {table: difference.actual_rows for table, difference in found.items()} == dict(lab.SNAPSHOT)
    assert all(difference.equal for difference in found.values()), found


def test_a_feed_is_sent_with_spark_submit(submitted: tuple[Endpoints, str], shell: Shell, checkout: Path) -> None:
    """The job of docs/canonical.md, like those of the other stages; its configuration has one feed more than the rest
    of this page.
    """
    servers, _ = submitted
    conf = checkout / "conf_with_a_feed"
    shutil.copytree(readme.ROOT / "conf", conf)
    (conf / "canonical").mkdir()
    (conf / "canonical" / "customers.yaml").write_text(FEED, encoding="utf-8")
    create(servers.kafka, "cdm.customers")
    variables = [each for each in readme.commands("The stages with spark-submit") if each.startswith("export")]
    job = f'spark-submit --jars "$(replicator jars)" jobs/canonical.py --env local --conf {conf.name}'
    assert "canonical" in shell([*STACK, *variables, job])
    events = [json.loads(value or "") for _, value, _ in consumed(servers.kafka, "cdm.customers")]
    assert len({event["id"] for event in events}) == len(events) == lab.SNAPSHOT["dim_customers"]
    assert {event["op"] for event in events} == {"read"}
    with closing(log_in(servers.mariadb)) as source, source.cursor() as cursor:
        cursor.execute("SELECT customerNumber, customerName FROM classicmodels.customers")
        assert {(event["after"]["id"], event["after"]["name"]) for event in events} == set(cursor.fetchall())


@pytest.fixture
def here(
    spark: SparkSession, submitted: tuple[Endpoints, str], checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> Endpoints:
    """Where a reader stands behind ``STACK``, for the process of the tests: folder, variables, the lake on S3."""
    servers, _ = submitted
    monkeypatch.chdir(checkout)
    for name, value in servers.env().items():
        monkeypatch.setenv(name, value)
    known_store(spark, settings.load(checkout / "conf", "local"), servers.s3.bucket)
    return servers


def test_what_is_in_the_lake_on_s3_is_not_done_again_and_answers(here: Endpoints, shell: Shell) -> None:
    """The rest of "The local stack": all stages in one driver find nothing new; ``status`` and ``sql`` answer."""
    *rest, _ = readme.commands("The local stack")[len(FILL) :]
    looks = rest.index("replicator run --env local") + 1
    with closing(warehouse.connect(here.postgres)) as target:
        before = warehouse.last_commit(target)
        told = shell([*STACK, *rest[:looks]]) + typed(shell, rest[looks:])
        assert warehouse.last_commit(target) == before
    assert "122" in told
    assert "fact_orders" in told


def test_a_model_that_the_reader_adds_is_built_and_published(here: Endpoints, shell: Shell, checkout: Path) -> None:
    """The example of "Add a gold model", beside the shipped ones."""
    assert here
    for suffix in (".sql", ".yaml"):
        name = f"conf/models/dim_offices{suffix}"
        (checkout / name).write_text(readme.file(name), encoding="utf-8")
    told = typed(shell, readme.commands("Add a gold model"))
    built = re.findall(r"(gold|publish)\W+dim_offices", told)
    assert built == ["gold", "publish"], told
