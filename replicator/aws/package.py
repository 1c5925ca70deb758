"""Everything that a stage needs on EMR, in one folder: ``replicator aws package``. The same project gives the same
bytes.

1. The wheel, by the project's own build backend. 2. The jobs. 3. One environment's configuration. 4. Python packages
for EMR's Python and processor, from the lock, on whatever machine this runs. 5. JARs that EMR does not provide. 6. A
list of everything.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from replicator.aws import archive, runtime
from replicator.aws.manifest import BOOTSTRAP, CONF, DEPENDENCIES, MANIFEST, Manifest
from replicator.config import substitution
from replicator.config.yamlfile import Problems, read
from replicator.errors import ConfigError, Unreachable
from replicator.spec import references

_EPOCH = "315532800"
"""The earliest time that a ZIP archive can represent."""

_PROJECT = ("pyproject.toml", "README.md", "LICENSE", "NOTICE")
_LOCK = "requirements/emr.lock"
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
_CONF = ("sources", "models", "queries", "canonical")
_SECRET = re.compile(r"PASSW|PASSPHRASE|(?<![A-Z])PASS(?![A-Z])|PWD|SECRET|TOKEN|KEY|CREDENTIAL|JAAS", re.IGNORECASE)
_SECRET_KEY = re.compile(r"^hash_key$|passwd|pwd|jaas|keystore[.]key$", re.IGNORECASE)
"""Keys of the configuration, in addition to those in ``references``."""

_PACKAGE_FILES = frozenset({"jobs", "jars", BOOTSTRAP, CONF, DEPENDENCIES, MANIFEST})
"""The contents of a package's folder, besides its wheel."""

_PLAIN = re.compile(r"[\w./:@,+=*-]+")
_PLAIN_FIX = "Use letters, digits and ./:@,+=*-_; put anything else into the environment's file."
_SCRIPT = f"""#!/bin/bash
# The bootstrap action of infra/aws/cluster.yaml: the Python that dependencies are packed for.
set -euo pipefail
sudo dnf install -y {runtime.PYTHON}
"""

Run = Callable[[Sequence[str], Mapping[str, str]], None]


@dataclass(frozen=True)
class PackageInputs:
    """The inputs of a package: a checkout of this project, a configuration folder, one of its environments with the
    values of the variables that it refers to, and JARs.
    """

    project: Path
    conf: Path
    env: str
    variables: Mapping[str, str]
    jars: Sequence[Path]


def build(inputs: PackageInputs, to: Path, run: Run, say: Callable[[str], None]) -> Manifest:
    """Fill the folder *to* and return its manifest; an older package there is deleted. ``run`` runs pip with the given
    arguments and additional variables; ``say`` is called with each step. Raises ConfigError if *project* is not a
    checkout, and if *to* contains anything but a package.
    """
    project = inputs.project
    _require_project(project)
    _clear_folder(to)
    (to / "jobs").mkdir(parents=True)
    say("the wheel")
    build_wheel(project, to, run)
    for job in sorted((project / "jobs").glob("*.py")):
        shutil.copyfile(job, to / "jobs" / job.name)
    pack_configuration(inputs.conf, inputs.env, to / CONF, inputs.variables)
    say("Python packages")
    pack_dependencies(project / _LOCK, to / DEPENDENCIES, run)
    say("JARs")
    (to / "jars").mkdir()
    for jar in inputs.jars:
        shutil.copyfile(jar, to / "jars" / jar.name)
    (to / BOOTSTRAP).write_text(_SCRIPT, encoding="utf-8")
    packed = Manifest(inputs.env, archive.checksums(to))
    (to / MANIFEST).write_text(packed.text(), encoding="utf-8")
    return packed


def build_wheel(project: Path, to: Path, run: Run) -> None:
    """Build the project's wheel from a copy with normalized modes, since those of checkouts differ."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(project / "replicator", copy / "replicator", ignore=shutil.ignore_patterns("__pycache__"))
        for name in _PROJECT:
            shutil.copyfile(project / name, copy / name)
        for each in copy.rglob("*"):
            each.chmod(0o755 if each.is_dir() else 0o644)
        constraint = {"PIP_CONSTRAINT": str(project / "requirements/constraints.in"), "SOURCE_DATE_EPOCH": _EPOCH}
        run(["wheel", "--quiet", "--no-deps", "--no-cache-dir", "--wheel-dir", str(to), str(copy)], constraint)


def pack_configuration(conf: Path, env: str, to: Path, variables: Mapping[str, str]) -> None:
    """Pack what ``--env`` reads: ``base.yaml``, the environment's file, sources, models, queries, and certificates.
    Files of other environments are left out. References to *variables* are replaced by their values: a job has no other
    way to get them. Raises ConfigError for a value with characters that a file may not take.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for file in (conf / "base.yaml", conf / f"{env}.yaml", *conf.glob("*.pem")):
            if file.is_file():
                shutil.copyfile(file, copy / file.name)
        for name in _CONF:
            if (conf / name).is_dir():
                shutil.copytree(conf / name, copy / name)
        for file in copy.rglob("*.yaml"):
            file.write_text(_fill(file.read_text(encoding="utf-8"), variables), encoding="utf-8")
        archive.pack(copy, to)


def referenced_variables(conf: Path, env: str) -> set[str]:
    """Return the variables that the environment's files refer to, except for secrets: those whose name sounds like one,
    and those that fill a key that holds a secret, here or elsewhere.
    """
    files = [conf / "base.yaml", conf / f"{env}.yaml", *(conf / "sources").glob("*.yaml")]
    files += [*(conf / "models").glob("*.yaml"), *(conf / "canonical").glob("*.yaml")]
    found, secret = set[str](), set[str]()
    for path, text in (
        each for file in files if file.is_file() for each in _walk_texts(read(file, Problems()).values, ())
    ):
        used = set(substitution.list_variables(text))
        found |= used
        if _is_secret(path, text):
            secret |= used
    return {name for name in found - secret if not _SECRET.search(name)}


def pack_dependencies(lock: Path, to: Path, run: Run) -> None:
    """Pack the packages of a lock as EMR's Python expects them, each verified against its hashes."""
    with tempfile.TemporaryDirectory() as folder:
        target = [f"--platform={name}" for name in _PLATFORMS]
        target += [f"--python-version={runtime.PYTHON.removeprefix('python')}", "--implementation=cp"]
        how = ["--quiet", "--no-deps", "--no-compile", "--require-hashes", "--only-binary=:all:"]
        run(["install", *how, *target, "--target", folder, "--requirement", str(lock)], {})
        shutil.rmtree(Path(folder) / "bin", ignore_errors=True)  # scripts that refer to the Python of this machine
        archive.pack(Path(folder), to)


def run_pip(arguments: Sequence[str], variables: Mapping[str, str]) -> None:
    """Run this environment's pip. Raises Unreachable with the last line of its output."""
    given = [f"{name}={value}" for name, value in variables.items()]
    command = ["env", *given, sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        output = [line for line in done.stderr.splitlines() if line.strip()] or ["no output"]
        raise Unreachable(f"pip failed: {output[-1]}", fix="Check the network and pip's configuration, then run again.")


def _walk_texts(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every text with the keys above it; a list's items have the path of the list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk_texts(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _walk_texts(inner, path)
    elif isinstance(value, str):
        yield path, value


def _is_secret(path: tuple[str, ...], text: str) -> bool:
    """Whether a value is a secret, or contains one; the ``secrets`` of a job are names of secrets."""
    if "secrets" in path:
        return False
    filled = substitution.REFERENCE.sub("filled", text)
    return _SECRET_KEY.search(path[-1]) is not None or any(references.plain_secrets({path[-1]: filled}))


def _fill(text: str, variables: Mapping[str, str]) -> str:
    """The text of a YAML file with the values of those variables. A value without quotes gets them if YAML would not
    read it as a text, which it is where variables are substituted after reading.
    """
    parts, done = list[str](), 0
    for token in yaml.scan(text):
        if isinstance(token, yaml.ScalarToken) and token.plain:
            begin, end = token.start_mark.index, token.end_mark.index
            parts += [_substitute(text[done:begin], variables), _fill_plain(text[begin:end], variables)]
            done = end
    return "".join((*parts, _substitute(text[done:], variables)))


def _fill_plain(scalar: str, variables: Mapping[str, str]) -> str:
    filled = _substitute(scalar, variables)
    if filled == scalar or _is_plain_text(filled):
        return filled
    return "'" + filled.replace("'", "''") + "'"


def _is_plain_text(scalar: str) -> bool:
    try:
        return bool(yaml.safe_load(scalar) == scalar)
    except yaml.YAMLError:
        return False


def _substitute(text: str, variables: Mapping[str, str]) -> str:
    """The text with the values of those variables, also in the default of another reference; ``$${`` and other
    references stay.
    """

    def value(match: re.Match[str]) -> str:
        found = variables.get(match[1] or "")
        if found is None:
            return f"${{{match[1]}:-{_substitute(match[3], variables)}}}" if match[3] else match[0]
        if not _PLAIN.fullmatch(found):
            raise ConfigError(f"the value of ${match[1]} cannot be written into a package", fix=_PLAIN_FIX)
        return found

    return substitution.REFERENCE.sub(value, text)


def _clear_folder(to: Path) -> None:
    """Delete an older package, also an incomplete one."""
    if not to.exists():
        return
    if not to.is_dir() or not _is_package(list(to.iterdir()), to / "jobs"):
        fix = "Use another: --to DIR."
        raise ConfigError("the folder contains files that are not from a package", where=str(to), fix=fix)
    for each in to.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()


def _is_package(entries: Sequence[Path], jobs: Path) -> bool:
    """Whether the folder contains nothing but a package. The folder of jobs is created first and empty, then the wheel,
    then the rest.
    """
    if not entries:
        return True
    is_whole = any(each.suffix == ".whl" for each in entries)
    is_ours = all(each.name in _PACKAGE_FILES or each.suffix == ".whl" for each in entries)
    return is_ours and jobs.is_dir() and (is_whole or (len(entries) == 1 and not any(jobs.iterdir())))


def _require_project(project: Path) -> None:
    missing = [name for name in (*_PROJECT, _LOCK, "jobs/bronze.py", "replicator") if not (project / name).exists()]
    if missing:
        fix = "Run it in a checkout of the project, or give one with --project DIR."
        raise ConfigError(f"{missing[0]} does not exist", where=str(project), fix=fix)
