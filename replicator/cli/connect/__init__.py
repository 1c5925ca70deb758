"""``replicator connect``: the Debezium connectors that capture the sources. One file per group of verbs."""

from __future__ import annotations

import typer

from replicator.cli.connect import files, life, offsets, ready, snapshot

app = typer.Typer(help="The connectors that capture the sources.", no_args_is_help=True)
app.add_typer(offsets.app, name="offsets")
app.command()(life.plugins)
app.command()(files.validate)
app.command()(files.diff)
app.command()(files.apply)
app.command("list")(life.list_)
app.command()(life.status)
app.command()(life.pause)
app.command()(life.resume)
app.command()(life.restart)
app.command()(life.stop)
app.command()(life.delete)
app.command()(ready.check)
app.command()(snapshot.snapshot)
