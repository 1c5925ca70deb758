"""``replicator canonical``: feeds of events for other teams, the schema of their events, and their progress."""

from __future__ import annotations

from typing import Annotated

import typer

from replicator.cli import console, options

app = typer.Typer(no_args_is_help=True, help="Topics of events for other teams.")

_COLUMNS = ("feed", "topic", "table", "version", "sent up to", "newest")

Name = Annotated[str, typer.Argument(help="A feed: a file of conf/canonical without its suffix.", metavar="FEED")]


@app.command("list")
def list_(
    context: typer.Context,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """List the feeds, each with the table version up to which its events were sent."""
    from replicator import assemble
    from replicator.session import session
    from replicator.stages import canonical

    settings = options.settings(env, conf)
    feeds = assemble.feed_context(spark := session(settings, debug=options.is_debug(context), brief=True), settings)
    lags = () if feeds is None else canonical.list_lags(spark, feeds)
    rows = [
        (each.feed.name, each.feed.topic, each.feed.table, each.feed.version, each.upto, each.newest) for each in lags
    ]
    if as_json:
        keys = [name.replace(" ", "_") for name in _COLUMNS]
        console.print_json([dict(zip(keys, row, strict=True)) for row in rows])
    elif rows:
        console.print_table(_COLUMNS, [[None if cell is None else str(cell) for cell in row] for row in rows])
    else:
        console.narrate("No feed is configured: conf/canonical has none.")


@app.command()
def schema(
    context: typer.Context,
    name: Name,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
) -> None:
    """Print the JSON Schema of a feed's events for its present table and file."""
    from replicator import assemble
    from replicator.session import session
    from replicator.stages import canonical

    settings = options.settings(env, conf)
    feed = settings.feed(name)
    spark = session(settings, debug=options.is_debug(context), brief=True)
    feeds = assemble.feed_context(spark, settings)
    if feeds is not None:
        console.print_json(canonical.current_schema(spark, feeds, feed))


@app.command()
def restart(
    context: typer.Context,
    name: Name,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    wait: options.Wait = 0,
) -> None:
    """Reset the progress of a feed: the next run sends all present rows as ``read`` events. Rows that were deleted
    since its last event get no event.
    """
    from replicator import assemble
    from replicator.operate.lock import exclusive
    from replicator.session import session
    from replicator.stages.run_report import CANONICAL

    settings = options.settings(env, conf)
    feed, lake = settings.feed(name), options.existing_lake(settings)
    with exclusive(lake, (CANONICAL,), assemble.lease_options(settings, wait)) as fence:
        spark = session(settings, debug=options.is_debug(context), brief=True)
        feeds = assemble.feed_context(spark, settings, fence)
        if feeds is not None:
            feeds.at.control.remove(lake.canonical(feed.name))
    console.narrate(f"{feed.name} starts over with the next run.")
