"""The entry point of ``jobs/*.py`` under ``spark-submit``: one stage, with the options of ``replicator run``."""

from __future__ import annotations

import sys

from replicator import environment
from replicator.aws import secrets
from replicator.cli import main


def submit(stage: str) -> None:
    """Run one stage; the arguments after the script are those of ``replicator run``.

    Variables that ``$REPLICATOR_SECRETS`` names are read from Secrets Manager first.
    """
    sys.argv = [f"jobs/{stage}.py", "run", stage, *sys.argv[1:]]
    main(_read_secrets)


def _read_secrets() -> None:
    if wanted := environment.variable(secrets.VARIABLE):
        environment.set_defaults(secrets.read(secrets.parse(wanted)))
