"""``replicator connect``: manage the Debezium connectors that capture the sources. One module per group of verbs."""

from __future__ import annotations

import typer

from replicator.cli.connect import files, lifecycle, offsets, readiness, snapshot

app = typer.Typer(help="The connectors that capture the sources.", no_args_is_help=True)
app.add_typer(offsets.app, name="offsets")
app.command()(lifecycle.plugins)
app.command()(files.validate)
app.command()(files.diff)
app.command()(files.apply)
app.command("list")(lifecycle.list_)
app.command()(lifecycle.status)
app.command()(lifecycle.pause)
app.command()(lifecycle.resume)
app.command()(lifecycle.restart)
app.command()(lifecycle.stop)
app.command()(lifecycle.delete)
app.command()(readiness.check)
app.command()(snapshot.snapshot)
