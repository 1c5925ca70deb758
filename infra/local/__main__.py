"""``python -m infra.local VERB [--home DIR] [service ...]``, from the repository's root.

``up``, ``down``, ``status``, ``env`` (addresses and credentials), ``fetch`` (the JARs of the stack and of the lake, so
that a later start needs no network), ``java`` (which one would run them), ``plugins`` (for infra/compose.yaml).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from dataclasses import asdict
from pathlib import Path

from infra.local import SERVICES, Stack
from infra.local.connect import lay_out_plugins
from infra.local.ending import exit_code_of, tell
from infra.local.parts import Parts
from infra.local.settings import preferred_java
from replicator import jars
from replicator.errors import ConfigError
from replicator.jvm import class_archive, sparkline
from replicator.jvm.java import java_home
from replicator.settings import cache_dir


def main() -> int:
    """Run one verb; the exit code is the error's own."""
    options = _options()
    stack = Stack(options.home)
    return exit_code_of(
        lambda: _VERBS[options.verb](stack, options),
        interrupted="Interrupted; what this command had started is stopped again.",
    )


def _up(stack: Stack, options: argparse.Namespace) -> None:
    began = time.monotonic()
    stack.up(options.services or SERVICES, owner=options.owner, tell=tell)
    tell(f"the stack is up after {time.monotonic() - began:.1f} s; its folder is {options.home}")


def _down(stack: Stack, options: argparse.Namespace) -> None:
    if options.delete:
        stack.delete()
        tell(f"the stack is down and {options.home} is removed")
    else:
        stack.down(options.services or SERVICES, tell=tell)


def _status(stack: Stack, options: argparse.Namespace) -> None:
    found = stack.status()
    if options.json:
        print(json.dumps([asdict(one) for one in found], default=str, indent=2))
        return
    for one in found:
        state = f"pid {one.pid:<8} {one.memory_mb:5} MB" if one.pid else "down"
        print(f"{one.name:9} 127.0.0.1:{one.port}  {state:20}  {one.log}")
    print(f"{'together':9} {sum(one.memory_mb for one in found)} MB")


def _env(stack: Stack, options: argparse.Namespace) -> None:
    endpoints = stack.endpoints()
    if options.json:
        print(json.dumps(asdict(endpoints), indent=2))
        return
    for name, value in endpoints.env().items():
        print(f"export {name}={value}")


def _fetch(stack: Stack, options: argparse.Namespace) -> None:
    stack.fetch(options.services or SERVICES)
    java = java_home(preferred_java())
    line = sparkline.installed()
    jars.fetch(jars.load_lock(line.name, line.formats), cache_dir(), java=java)
    class_archive.ensure(java, tell)
    tell(f"all JARs are in {cache_dir()}")


def _plugins(stack: Stack, options: argparse.Namespace) -> None:
    if not options.to:
        raise ConfigError("Where should the plugins go?", fix="Name a folder: `plugins --to .cache/plugins`.")
    stack.fetch(["connect"])
    lay_out_plugins(options.to, Parts(cache_dir()), shutil.copyfile)
    tell(f"Debezium's JARs are in {options.to}")


def _java(stack: Stack, options: argparse.Namespace) -> None:  # noqa: ARG001 - every verb takes the same two
    print(java_home(preferred_java()))


_VERBS = {"up": _up, "down": _down, "status": _status, "env": _env, "fetch": _fetch, "java": _java, "plugins": _plugins}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local", description="The local stack.")
    parser.add_argument("verb", choices=_VERBS)
    parser.add_argument("services", nargs="*", help=f"default: all of {', '.join(SERVICES)}")
    parser.add_argument("--home", type=Path, default=Path(".cache/stack"), help="folder of data, logs and ports")
    parser.add_argument("--owner", type=int, metavar="PID", help="up: stop again when this process ends")
    parser.add_argument("--delete", action="store_true", help="down: remove the data of all as well")
    parser.add_argument("--json", action="store_true", help="status, env: print JSON")
    parser.add_argument("--to", type=Path, metavar="DIR", help="plugins: the folder that infra/compose.yaml mounts")
    options = parser.parse_intermixed_args()  # options may also precede the services
    if unknown := set(options.services) - set(SERVICES):
        parser.error(f"unknown service {', '.join(sorted(unknown))}; there are {', '.join(SERVICES)}")
    if options.delete and options.services:
        parser.error("--delete removes the data of all services: name none")
    return options


if __name__ == "__main__":
    sys.exit(main())
