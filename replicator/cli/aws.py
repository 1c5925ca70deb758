"""``replicator aws``: run stages on EMR, package what they need there, and configure clients of MSK (docs/aws.md)."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from replicator.cli import aws_render, console, options
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from replicator.aws.cluster import Cluster
    from replicator.aws.job import Job
    from replicator.aws.manifest import Manifest
    from replicator.aws.runs import Run
    from replicator.aws.serverless import Serverless
    from replicator.config.awskeys import Stage as StageName
    from replicator.settings import Settings

app = typer.Typer(help="Stages on Amazon EMR, and clients of Amazon MSK.", no_args_is_help=True)
app.command()(aws_render.render)


class Stage(str, Enum):
    """The stages that can be submitted."""

    bronze = "bronze"
    silver = "silver"
    gold = "gold"
    publish = "publish"
    canonical = "canonical"


class Stream(str, Enum):
    """The output streams of a driver."""

    stderr = "stderr"
    stdout = "stdout"


_Package = Annotated[
    Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
    typer.Option(
        "--package", help="The id of an uploaded package, or a folder with one. Default: the current one.", metavar="ID"
    ),
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the exact call and start nothing.")]
_RUN = "The id that submit or steps printed."
_COLUMNS = ("id", "name", "state", "started (UTC)", "seconds", "reason")


@app.command()
def package(
    to: Annotated[Path, typer.Option("--to", help="The folder to fill.", metavar="DIR")] = Path("dist/aws"),
    project: Annotated[Path, typer.Option("--project", help="A checkout of this project.", metavar="DIR")] = Path(),
    upload: Annotated[
        bool, typer.Option("--upload", help="Upload it below aws.artifacts and make it the current one.")
    ] = False,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """Copy wheel, jobs, configuration, Python packages and JARs to a folder for EMR; print its name."""
    from replicator import environment, jars, settings
    from replicator.aws import package as packing
    from replicator.aws import runtime, s3_folder
    from replicator.jvm import sparkline
    from replicator.jvm.java import java_home

    configured = options.settings(env, conf)
    formats = [name for name in configured.formats if name != "delta"]
    lock = jars.load_lock(sparkline.DEFAULT.name, [*formats, "msk"])
    wanted = runtime.missing_jars(lock) if configured.runtime == "emr" else lock
    paths = jars.fetch(wanted, configured.cache, java=java_home(environment.variable("JAVA_HOME")))
    folder = settings.conf_dir(conf)
    values = {
        name: environment.variable(name) for name in packing.referenced_variables(folder, env) - configured.aws.secrets
    }
    known = {name: value for name, value in values.items() if value is not None}
    content = packing.PackageInputs(project.resolve(), folder, env, known, paths)
    packed = packing.build(content, to, packing.run_pip, console.narrate)
    location = str(to)
    if upload:
        target = s3_folder.S3Folder(_require(configured.aws.artifacts, "aws.artifacts"), configured.aws.region)
        location = s3_folder.upload(to, packed, target, console.narrate)
    if as_json:
        console.print_json({"id": packed.id, "at": location, "files": packed.files})
    else:
        console.print_text(packed.id)
    console.narrate(f"{len(packed.files)} files at {location}")


@app.command()
def submit(
    stage: Annotated[Stage, typer.Argument(help="bronze, silver, gold, publish or canonical.", metavar="STAGE")],
    continuous: Annotated[bool, typer.Option("--continuous", help="Run until it is cancelled.")] = False,
    package: _Package = None,
    dry_run: _DryRun = False,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
) -> None:
    """Start a stage, as a job run of EMR Serverless or as a step of a cluster; print its id."""
    configured = options.settings(env, conf)
    [job] = _jobs(configured, env, [stage], package, continuous=continuous)
    if configured.aws.cluster:
        _add_steps(configured, [job], None, dry_run=dry_run)
        return
    from replicator.aws import job as jobs

    keys = configured.aws
    role = _require(keys.roles.get(job.stage), f"aws.roles.{job.stage}")
    request = jobs.serverless_request(
        job, _require(keys.application, "aws.application"), role, keys.logs, keys.log_group
    )
    if dry_run:
        _print_call("emr-serverless", "start_job_run", request)
        return
    console.print_text(_serverless(configured).submit(request))


@app.command()
def steps(
    stages: Annotated[
        list[Stage], typer.Argument(help="bronze, silver, gold, publish, canonical, in any order.", metavar="STAGE")
    ],
    at_once: Annotated[int, typer.Option("--at-once", help="How many runs at a time.", min=1, max=5)] = 5,
    package: _Package = None,
    dry_run: _DryRun = False,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
) -> None:
    """Add several stages to a cluster as independent steps; print their ids."""
    configured = options.settings(env, conf)
    _require(configured.aws.cluster, "aws.cluster")
    _add_steps(configured, _jobs(configured, env, stages, package), at_once, dry_run=dry_run)


@app.command()
def status(
    run: Annotated[Optional[str], typer.Argument(help=f"{_RUN} Default: the newest ones.", metavar="[RUN]")] = None,  # noqa: UP045
    last: Annotated[int, typer.Option("--last", help="How many runs, newest first.", min=1, max=1000)] = 10,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """Show the state of stages that were started on EMR; exit code 1 if the requested one has failed."""
    place = _emr(options.settings(env, conf))
    found = place.runs(last) if run is None else [place.run(run)]
    now = datetime.now(timezone.utc)
    if as_json:
        console.print_json([dict(zip(_COLUMNS, _row(each, now), strict=True)) for each in found])
    else:
        console.print_table(_COLUMNS, [_row(each, now) for each in found])
    if run is not None and found[0].failed:
        raise typer.Exit(1)


@app.command()
def logs(
    run: Annotated[str, typer.Argument(help=_RUN, metavar="RUN")],
    stream: Annotated[Stream, typer.Option("--stream", help="Which log of the driver.")] = Stream.stderr,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
) -> None:
    """Print the driver log of a run, which EMR stored in aws.logs."""
    from replicator.aws import logs as reading
    from replicator.aws.s3_folder import S3Folder

    configured = options.settings(env, conf)
    place = S3Folder(_require(configured.aws.logs, "aws.logs"), configured.aws.region)
    console.print_text(reading.read_text(_emr(configured).log(run, stream.value), place).rstrip("\n"))


def _jobs(
    configured: Settings, env: str, stages: Sequence[Stage], package: str | None, *, continuous: bool = False
) -> list[Job]:
    """Return the stages as jobs of one package. Raises ConfigError for a package made for another environment."""
    from replicator.aws.job import Job

    if configured.runtime != "emr":
        raise ConfigError(f"environment {env!r} is not for EMR", fix="Set `runtime: emr` in its file.")
    packed, place = _packed(configured, package)
    if packed.env != env:
        raise ConfigError(f"package {packed.id} holds the configuration of environment {packed.env!r}, not {env!r}")
    names: list[StageName] = [each.value for each in stages]
    keys, formats = configured.aws, configured.formats
    return [Job(name, packed, place, formats, keys.job(name), continuous, keys.region) for name in names]


def _packed(configured: Settings, package: str | None) -> tuple[Manifest, str]:
    """Return a package and its location on S3. One in a folder is assumed to be uploaded, without a request. Raises
    ConfigError.
    """
    from replicator.aws import archive, manifest, s3_folder

    root = _require(configured.aws.artifacts, "aws.artifacts")
    file = Path(package or "") / manifest.MANIFEST
    if package and file.is_file():
        found = manifest.Manifest.told(file.read_text(encoding="utf-8"), str(file))
        return found, f"{root}/{found.id}"
    if package and not archive.is_content_id(package):
        what = f"the folder {package} contains no package" if Path(package).is_dir() else f"{package} is not a package"
        fix = "Give the id of an uploaded one, or a folder that `replicator aws package --to DIR` has written."
        raise ConfigError(what, fix=fix)
    return s3_folder.select_package(s3_folder.S3Folder(root, configured.aws.region), package)


def _add_steps(configured: Settings, jobs: Sequence[Job], at_once: int | None, *, dry_run: bool) -> None:
    """Submit the steps in order; with *at_once*, first set the step concurrency of the cluster."""
    from replicator.aws import job as requests

    cluster = _require(configured.aws.cluster, "aws.cluster")
    calls = requests.steps(jobs, cluster, configured.aws.roles)
    if dry_run:
        if at_once is not None:
            _print_call("emr", "modify_cluster", {"ClusterId": cluster, "StepConcurrencyLevel": at_once})
        for call in calls:
            _print_call("emr", "add_job_flow_steps", call)
        return
    emr = _cluster(configured)
    if at_once is not None:
        emr.at_once(at_once)
    for call in calls:
        for each in emr.submit(call):
            console.print_text(each)


def _emr(configured: Settings) -> Serverless | Cluster:
    return _cluster(configured) if configured.aws.cluster else _serverless(configured)


def _cluster(configured: Settings) -> Cluster:
    from replicator.aws.cluster import Cluster

    return Cluster(_require(configured.aws.cluster, "aws.cluster"), configured.aws.region)


def _serverless(configured: Settings) -> Serverless:
    from replicator.aws.serverless import Serverless

    return Serverless(_require(configured.aws.application, "aws.application"), configured.aws.region)


def _require(value: str | None, key: str) -> str:
    if not value:
        raise ConfigError(f"{key} is not set", fix="See docs/aws.md for its value.")
    return value


def _print_call(service: str, call: str, request: dict[str, Any]) -> None:
    console.print_text(json.dumps({"service": service, "call": call, "arguments": request}, indent=2))


def _row(run: Run, now: datetime) -> tuple[str, ...]:
    seconds = ((run.ended or now) - run.started).total_seconds()
    started = run.started.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    return (run.id, run.name, run.state, started, f"{max(0.0, seconds):.0f}", run.reason)
