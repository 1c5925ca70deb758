"""``conf/*.yaml`` as one frozen value, its ``${VARIABLES}`` filled from the environment (architecture section 7).

:func:`load` reads ``base.yaml``, overrides it with ``<env>.yaml``, and adds the sources, models and feeds. All problems
are reported at once, each with its file, line and key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, SecretStr, SkipValidation

from replicator.config import feedfile, modelfile, sourcefile
from replicator.config.settingkeys import DATABASE, CatalogKeys, KafkaKeys, Keys, LakeKeys, TargetKeys
from replicator.config.strict import check, to_text
from replicator.config.yamlfile import Document, KeyPath, Origin, Problems, leaves, read, yaml_files
from replicator.environment import variables as of_process
from replicator.errors import ConfigError
from replicator.jvm import sparkline
from replicator.lake import is_local, local_path
from replicator.spec import Feed, Model, SourceSpec, references
from replicator.spelling import suggest

# the keys that Spark redacts in its UI are masked here, too, for consistency
_SECRET_KEY = re.compile(r"secret|password|token|access[.]?key|credential|jaas", re.IGNORECASE)


@dataclass(frozen=True)
class SettingEntry:
    """One line of ``replicator config show``: the key, its value with secrets masked, and its origin."""

    key: str
    value: str
    origin: str


class Settings(Keys):
    """The settings of one run: the keys of the YAML files, and the sources, models and feeds declared in the other
    files.
    """

    env: str
    cache: SkipValidation[Path]
    sources: SkipValidation[tuple[SourceSpec, ...]] = ()
    models: SkipValidation[tuple[Model, ...]] = ()
    feeds: SkipValidation[tuple[Feed, ...]] = ()
    origins: SkipValidation[Mapping[KeyPath, Origin]] = Field(default_factory=dict, repr=False)

    def source(self, name: str) -> SourceSpec:
        """Return the source of that name. Raises ConfigError, listing the existing ones or suggesting the nearest."""
        found = next((s for s in self.sources if s.name == name), None)
        if found is None:
            raise ConfigError(f"source {name!r} does not exist{suggest(name, [s.name for s in self.sources])}")
        return found

    def target(self, name: str) -> TargetKeys:
        """Return the serving database of that name. Raises ConfigError, listing the existing ones or suggesting the
        nearest.
        """
        if name not in self.targets:
            raise ConfigError(f"target {name!r} does not exist{suggest(name, self.targets)}")
        return self.targets[name]

    def model(self, name: str) -> Model:
        """Return the model of that name. Raises ConfigError, listing the existing ones or suggesting the nearest."""
        found = next((each for each in self.models if each.name == name), None)
        if found is None:
            raise ConfigError(f"model {name!r} does not exist{suggest(name, [each.name for each in self.models])}")
        return found

    def feed(self, name: str) -> Feed:
        """Return the feed of that name. Raises ConfigError, listing the existing ones or suggesting the nearest."""
        found = next((each for each in self.feeds if each.name == name), None)
        if found is None:
            raise ConfigError(f"feed {name!r} does not exist{suggest(name, [each.name for each in self.feeds])}")
        return found

    def catalog_in(self, database: str | None) -> CatalogKeys:
        """Return the catalog's settings, with another database if one is given. Raises ConfigError for an
        invalid name.
        """
        if database is None:
            return self.catalog
        if not re.fullmatch(DATABASE, database):
            raise ConfigError(f"{database!r} is not a valid database name: use lower-case letters, digits and _")
        return self.catalog.model_copy(update={"database": database})

    def with_formats_of(self, declared: SourceSpec) -> Settings:
        """Return these settings with the formats added that a declaration requires."""
        required = {name for table in declared.tables for name in table.formats}
        return self.model_copy(update={"formats": tuple(sorted({*self.formats, *required}))})

    def describe(self) -> Iterator[SettingEntry]:
        """Yield every value with its origin, secrets masked."""
        keys = {name: _plain(getattr(self, name)) for name in Keys.model_fields}
        for path, value in leaves(keys):
            yield SettingEntry(_key(path), _mask(path, value), self._origin(path))
        for source in self.sources:
            yield SettingEntry(
                f"sources.{source.name}", source.objects or source.topics, self._origin(("sources", source.name))
            )
            yield from self._login(source)
        for model in self.models:
            yield SettingEntry(f"models.{model.name}", ", ".join(model.key), self._origin(("models", model.name)))
        for feed in self.feeds:
            yield SettingEntry(f"canonical.{feed.name}", feed.topic, self._origin(("canonical", feed.name)))

    def _login(self, source: SourceSpec) -> Iterator[SettingEntry]:
        login, origin = source.database, self._origin(("sources", source.name))
        if login is None:
            return
        for field in fields(login):
            value = "***" if field.name == "password" and login.password else str(getattr(login, field.name))
            yield SettingEntry(f"sources.{source.name}.database.{field.name}", value, origin)

    def _origin(self, path: KeyPath) -> str:
        origin = self.origins.get(path)
        return str(origin) if origin else "default"


def load(conf: Path | None, env: str, environment: Mapping[str, str] | None = None) -> Settings:
    """Load the configuration of one environment: ``<conf>/base.yaml``, overridden by ``<conf>/<env>.yaml``.

    *conf* defaults to ``$REPLICATOR_CONF``, else ``./conf``; *environment* to the process's own. Raises a ConfigError
    that lists every problem found; models and feeds are checked only once all sources are valid.
    """
    variables = of_process() if environment is None else environment
    place = conf_dir(conf, variables)
    problems = Problems()
    document = _read_layers(place, env, problems).filled(variables, problems)
    keys = check(Keys, document, problems)
    origins = dict(document.origins)
    kafka = keys.kafka if keys is not None else KafkaKeys()
    so_far = len(problems.found)
    found = sourcefile.load_sources(place / "sources", kafka.bootstrap_servers, kafka.options, variables, problems)
    if len(problems.found) > so_far:
        problems.raise_if_any()  # else models of an invalid source would be reported as naming an unknown one
    targets = None if keys is None else list(keys.targets)
    sources = tuple(source for source, _ in found)
    models = modelfile.load_models(place / "models", sources, targets, variables, problems)
    shared = None if keys is None else (kafka.bootstrap_servers, kafka.options)
    named = [path.stem for path in yaml_files(place / "models", Problems())]
    feeds = feedfile.load_feeds(place / "canonical", sources, named, shared, variables, problems)
    _refuse_formats(keys, found, problems)
    _refuse_spark_line(keys, problems)
    problems.raise_if_any()
    origins |= {("sources", s.name): Origin(file) for s, file in found}
    origins |= {("models", m.name): Origin(str(place / "models" / f"{m.name}.yaml")) for m in models}
    origins |= {("canonical", f.name): Origin(str(place / "canonical" / f"{f.name}.yaml")) for f in feeds}
    nouns = {"sources": sources, "models": models, "feeds": feeds, "origins": origins}
    return _settings(keys or Keys(), env, cache_dir(variables), **nouns)


def conf_dir(conf: Path | None, environment: Mapping[str, str] | None = None) -> Path:
    """The configuration's folder: *conf*, else ``$REPLICATOR_CONF``, else ``./conf``."""
    variables = of_process() if environment is None else environment
    return conf if conf is not None else Path(variables.get("REPLICATOR_CONF") or "conf")


def bare(lake: str | None = None) -> Settings:
    """Return the defaults, for commands that need no configuration (``run --recorded``, ``sql --lake``). Raises
    ConfigError for an invalid lake.
    """
    keys = Keys() if lake is None else Keys(lake=_lake(lake))
    root = keys.lake.root
    places = [local_path(root) / folder for folder in ("silver", "twins/hudi")] if is_local(root) else []
    if any(path for place in places for path in place.glob("*/*/.hoodie")):
        keys = keys.model_copy(update={"formats": ("delta", "hudi")})
    return _settings(keys, "none", cache_dir())


def _lake(root: str) -> LakeKeys:
    problems = Problems()
    keys = check(LakeKeys, Document({"root": root}, {("root",): Origin("--lake")}), problems)
    problems.raise_if_any()
    assert keys is not None  # noqa: S101 - otherwise a problem was raised
    return keys


def load_declarations(path: Path | str) -> SourceSpec:
    """Load a ``--declare`` file, with variables of the process's environment. Raises ConfigError."""
    return sourcefile.load_declare_file(path, of_process())


def cache_dir(environment: Mapping[str, str] | None = None) -> Path:
    """The folder for downloads and logs: ``$REPLICATOR_CACHE``, else ``replicator`` below ``$XDG_CACHE_HOME`` (default
    ``~/.cache``). Raises ConfigError for a user without a home directory, as in some containers.
    """
    variables = of_process() if environment is None else environment
    own = variables.get("REPLICATOR_CACHE")
    try:
        if own:
            return Path(own).expanduser()
        return Path(variables.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser() / "replicator"
    except RuntimeError as error:
        fix = "Set REPLICATOR_CACHE to a folder."
        raise ConfigError("no folder for downloads and logs is known: there is no home directory", fix=fix) from error


def _settings(keys: Keys, env: str, cache: Path, **nouns: Any) -> Settings:
    return Settings(env=env, cache=cache, **{name: getattr(keys, name) for name in Keys.model_fields}, **nouns)


def _read_layers(folder: Path, env: str, problems: Problems) -> Document:
    base, above = folder / "base.yaml", folder / f"{env}.yaml"
    if not _exists(folder, Path.is_dir):
        what = "is a file" if _exists(folder, Path.is_file) else "does not exist"
        raise ConfigError(
            f"configuration folder {folder} {what}",
            fix="Give --conf DIR or set REPLICATOR_CONF, or run where conf/ is; `replicator init` creates one.",
        )
    own = yaml_files(folder, problems)
    if not _exists(above, Path.is_file):
        problems.raise_if_any()  # the file may exist as .yml
        known = [file.stem for file in own if file.stem != "base" and ".example" not in file.suffixes]
        raise ConfigError(
            f"environment {env!r} does not exist: no file {above}{suggest(env, known)}",
            fix="Give --env NAME, or create that file: it overrides base.yaml and may be empty.",
        )
    below = read(base, problems) if base.is_file() else Document()
    return read(above, problems).over(below)


def _exists(path: Path, kind: Callable[[Path], bool]) -> bool:
    """Whether a file or folder of that kind exists. Raises ConfigError if access is denied or the name is too long."""
    try:
        return kind(path)
    except OSError as error:
        raise ConfigError(f"the configuration cannot be read: {error.strerror}", where=str(path)) from error


def _refuse_formats(keys: Keys | None, found: Iterable[tuple[SourceSpec, str]], problems: Problems) -> None:
    if keys is None:
        return  # the configured formats are not known
    for source, file in found:
        for table in source.tables:
            for name in (name for name in table.formats if name not in keys.formats):
                where = "in base.yaml or the environment's file"
                problems.add(f"{table.table} is kept in {name}: set `formats: [delta, {name}]` {where}", file)


def _refuse_spark_line(keys: Keys | None, problems: Problems) -> None:
    """Add a problem for a format that the installed Spark does not support, unless stages run on another Spark."""
    if keys is None or keys.runtime != "own":
        return
    try:
        sparkline.refuse_formats(sparkline.installed(), keys.formats)
    except ConfigError as error:
        problems.add(str(error), "formats")


def _plain(value: Any) -> Any:
    """The keys as plain mappings, with secrets still wrapped; pydantic's own dump would reveal them."""
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def _mask(path: KeyPath, value: Any) -> str:
    free = "spark" in path or "options" in path
    if isinstance(value, SecretStr):
        return "***" if value.get_secret_value() else ""
    if free and _SECRET_KEY.search(str(path[-1])):
        return "***"
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    # under any key, an address or JVM options may contain a password
    return "" if value is None else references.mask("", str(to_text(value)))


def _key(path: KeyPath) -> str:
    return ".".join(map(str, path))
