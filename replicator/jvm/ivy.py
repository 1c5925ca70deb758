"""Resolve JARs with the Ivy inside pyspark, one coordinate at a time. Run by ``jars.py`` as a process of its own.

    python -m replicator.jvm.ivy JAVA FOLDER < coordinates

Input is one coordinate per line, ended by an empty line. For each, in any order, one line of JSON is written:
``{"coordinate", "path"}`` or ``{"coordinate", "error"}``, whose error is empty if no repository has it. All messages of
Ivy, py4j and the JVM go to stderr. When stdin is closed, or this process ends in any other way, its JVM ends too. The
separate process also keeps py4j's complaints about a killed JVM away from the user.

No repository is named: Ivy uses its default, or the one in DEFAULT_ARTIFACT_REPOSITORY. Nothing is resolved
transitively, and ``~/.m2`` and ``~/.ivy2`` are neither read nor written.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from replicator.jvm import jvm_options, sparkline

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = 4
_MISSING = "missing artifact"
"""What Ivy says of a JAR whose description a repository has."""


def main() -> None:
    """Write an answer for every coordinate of stdin."""
    java, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folders: SimpleQueue[Path] = SimpleQueue()  # an Ivy cache is not safe for concurrent use
    for number in range(WORKERS):
        folders.put(folder / str(number))

    def answer(jvm: JavaGateway, coordinate: str) -> None:
        own = folders.get()
        try:
            result = {"path": resolve(jvm, coordinate, own)}
        except Py4JJavaError as error:
            result = {"error": str(error.java_exception.toString()).splitlines()[0]}
        except LookupError as error:
            result = {"error": str(error)}
        finally:
            folders.put(own)
        sys.stdout.write(json.dumps({"coordinate": coordinate, **result}) + "\n")
        sys.stdout.flush()

    with gateway(java, folder) as jvm, ThreadPoolExecutor(WORKERS) as pool:
        for line in iter(sys.stdin.readline, ""):  # the end of a killed parent, too
            if line == "\n":
                break
            pool.submit(answer, jvm, line.strip())
        Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def resolve(java: JavaGateway, coordinate: str, folder: Path) -> str:
    """Return the path in *folder* of one coordinate's JAR. Raises Py4JJavaError, or LookupError with the reason; with
    none if no repository has it.

    Spark's own ``resolveMavenCoordinates`` is not used: it leaves out scala-library, and copies every file again.
    Spark's settings are used, since they contain the user's mirror.
    """
    jvm = java.jvm
    none, own = jvm.scala.Option.apply(None), jvm.scala.Option.apply(str(folder))
    line = sparkline.installed()
    spoken = [jvm.java.lang.System.err] * line.ivy_streams
    settings = getattr(jvm, line.ivy).buildIvySettings(none, own, False, *spoken)
    resolvers = settings.getDefaultResolver().getResolvers()
    for resolver in [one for one in resolvers if one.getName() == "spark-packages"]:
        resolvers.remove(resolver)  # it has none of these JARs, and is slow to answer
    confs = java.new_array(jvm.String, 1)
    confs[0] = "default"
    options = jvm.org.apache.ivy.core.resolve.ResolveOptions()
    options.setTransitive(False).setConfs(confs)
    module = jvm.org.apache.ivy.core.module.id.ModuleRevisionId.newInstance(*coordinate.split(":"))
    report = jvm.org.apache.ivy.Ivy.newInstance(settings).resolve(module, options, False)
    files = [artifact.getLocalFile() for artifact in report.getAllArtifactsReports()]
    if report.hasError() or len(files) != 1 or files[0] is None:
        details = {artifact.getDownloadDetails() for artifact in report.getAllArtifactsReports()}
        raise LookupError("; ".join(sorted(details - {"", None, _MISSING})))
    return str(files[0].getAbsolutePath())


@contextmanager
def gateway(java: Path, folder: Path) -> Iterator[JavaGateway]:
    """Start a JVM with pyspark's class path, without Spark."""
    library = pyspark_jars()
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    port, token, process = launch_gateway(
        jarpath=str(next(library.glob("py4j-*.jar"))),
        classpath=str(library / "*"),
        javaopts=["-Xmx256m", *jvm_options.smallest_collector(), f"-Duser.home={home}", f"-Divy.home={home}"],
        java_path=str(java / "bin" / "java"),
        redirect_stdout=sys.stderr,
        redirect_stderr=sys.stderr,
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    try:
        yield JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    finally:
        process.terminate()
        process.wait()


def pyspark_jars() -> Path:
    """The folder of JARs inside the installed pyspark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("pyspark")
    return Path(spec.submodule_search_locations[0]) / "jars"


if __name__ == "__main__":
    main()
