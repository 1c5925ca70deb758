"""``conf/canonical/<name>.yaml``: a topic of events for other teams, made of the changes of one table.

topic: cdm.customers
table: dim_customers            # a model, or <source>/<database or schema>.<table>
version: 1                      # of the events' schema; raise it when their columns change
select:                         # without it every column as it is
  id: customer_key
  name: upper(customer_name)
where: country = 'USA'          # without it every row
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, field_validator, model_validator

from replicator.config import conditions, kafka_options
from replicator.config.columnkeys import refuse_duplicates
from replicator.config.strict import Strict, Text, check
from replicator.config.topicnames import includes_table
from replicator.config.yamlfile import Problems, read_required, yaml_files
from replicator.spec import Feed, SourceSpec
from replicator.spelling import suggest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

NonEmptyText = Annotated[str, Field(min_length=1)]


class FeedKeys(Strict):
    """A file ``<name>.yaml`` of ``conf/canonical``. ``table`` is a model, or <source>/<database or schema>.<table>.
    ``version`` is that of the events' schema: raise it when their columns change. ``select`` names columns and their
    SQL; by default all columns are sent unchanged. ``where`` selects the rows. ``every_change`` sends each change, not
    only the newest of a key. ``tombstones`` follow deletes, for a compacted topic. ``bootstrap_servers`` and
    ``options`` are those of Kafka, where they differ from the shared ones.
    """

    topic: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    table: NonEmptyText
    version: int = Field(default=1, ge=1)
    select: dict[NonEmptyText, NonEmptyText] = Field(default_factory=dict)
    where: NonEmptyText | None = None
    every_change: bool = False
    tombstones: bool = False
    description: str = ""
    bootstrap_servers: NonEmptyText | None = None
    options: dict[str, Text] = Field(default_factory=dict)

    @field_validator("options")
    @classmethod
    def _allowed(cls, options: dict[str, str]) -> dict[str, str]:
        return kafka_options.validate(options)

    @model_validator(mode="after")
    def _consistent(self) -> FeedKeys:
        refuse_duplicates(list(self.select), "select")
        if self.every_change and "/" not in self.table:
            raise ValueError("every_change needs a source's table: a model has no records")
        return self

    @model_validator(mode="after")
    def _each_alone(self) -> FeedKeys:
        expressions = {f"select of {name!r}": sql for name, sql in self.select.items()}
        if self.where is not None:
            expressions["where"] = self.where
        for what, sql in expressions.items():
            conditions.refuse_beyond_row(what, sql)
        return self


def load_feeds(
    folder: Path,
    sources: Sequence[SourceSpec],
    models: Collection[str],
    kafka: tuple[str, Mapping[str, str]] | None,
    environment: Mapping[str, str],
    problems: Problems,
) -> tuple[Feed, ...]:
    """Return every feed of a folder, by name; ``models`` are the names of all models, also of invalid ones; ``kafka``
    has the default servers and options (None: not known).

    Errors become problems: a table that does not exist, two feeds with one topic, a topic that a source reads.
    """
    found: list[Feed] = []
    for path in yaml_files(folder, problems):
        document = read_required(path, environment, problems)
        keys = check(FeedKeys, document, problems) if document.values else None
        if keys is None:
            continue
        feed = _build_feed(path.stem, keys, kafka or ("", {}))
        if kafka is not None and not feed.bootstrap_servers:
            problems.add(
                "no Kafka is configured to write to: give bootstrap_servers here or under kafka",
                document.origin(("topic",)),
            )
        for key, wrong in _find_errors(feed, sources, models, found):
            problems.add(wrong, document.origin((key,)))
        found.append(feed)
    return tuple(found)


def _build_feed(name: str, keys: FeedKeys, kafka: tuple[str, Mapping[str, str]]) -> Feed:
    servers, options = kafka
    return Feed(
        name,
        keys.topic,
        keys.table,
        keys.version,
        tuple(keys.select.items()),
        keys.where,
        keys.every_change,
        keys.tombstones,
        keys.description,
        keys.bootstrap_servers or servers,
        {**options, **keys.options},
    )


def _find_errors(
    feed: Feed, sources: Sequence[SourceSpec], models: Collection[str], others: Sequence[Feed]
) -> list[tuple[str, str]]:
    """Return the errors of a feed: the key, and the message."""
    wrong = _table_error(feed, sources, models)
    found = [("table", wrong)] if wrong else []
    duplicate = next((other for other in others if other.topic == feed.topic), None)
    if duplicate is not None:
        found.append(("topic", f"the feed {duplicate.name!r} already writes this topic"))
    reader = next((source for source in sources if source.matches(feed.topic)), None)
    if reader is not None:
        found.append(
            ("topic", f"the source {reader.name!r} reads this topic: the feed's events would be read back as records")
        )
    return found


def _table_error(feed: Feed, sources: Sequence[SourceSpec], models: Collection[str]) -> str | None:
    name, slash, table = feed.table.partition("/")
    if not slash:
        return None if name in models else f"model {name!r} does not exist{suggest(name, models)}"
    source = next((each for each in sources if each.name == name), None)
    if source is None:
        return f"source {name!r} does not exist{suggest(name, [each.name for each in sources])}"
    if not all(table.partition(".")):
        return "a table must be named <source>/<database or schema>.<table>"
    return None if includes_table(source, table) else f"the source {name!r} does not include {table!r}"
