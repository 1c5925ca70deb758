"""``conf/*.yaml`` as one frozen value; the only module that looks at the environment (architecture section 7).

:func:`load` reads ``base.yaml``, lays ``<env>.yaml`` over it, and adds the sources and models. All problems are
reported at once, each with its file, line and key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, SecretStr, SkipValidation, field_validator

from replicator import kafka_options, modelfile, sourcefile
from replicator.errors import ConfigError
from replicator.spec import Model, SourceSpec
from replicator.strict import Strict, check
from replicator.tablekeys import Format
from replicator.yamlfile import Document, KeyPath, Origin, Problems, leaves, nearest, read

# what Spark itself redacts in its UI, so that nobody is surprised by what shows and what does not
_SECRET_KEY = re.compile(r"secret|password|token|access[.]?key|credential|jaas", re.IGNORECASE)


def _text(value: Any) -> Any:
    """YAML's booleans and numbers as Spark writes them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value


def absolute(path: str) -> str:
    """A path as the JVM shall have it, whose own working directory may be another; one with a scheme as it is."""
    return path if "://" in path else os.path.abspath(os.path.expanduser(path))


Text = Annotated[str, BeforeValidator(_text)]
Name = Annotated[str, Field(min_length=1)]


class LakeKeys(Strict):
    """Where the lake is: a local directory (made absolute) or ``s3a://bucket/prefix``."""

    root: Name = "./lake"

    @field_validator("root")
    @classmethod
    def _absolute(cls, root: str) -> str:
        if "://" not in root:
            return absolute(root)
        if root.split("://", 1)[0] not in {"s3a", "file", "hdfs"}:
            raise ValueError("a lake is a local directory, s3a://bucket/prefix, hdfs:// or file://")
        return root.rstrip("/")


class KafkaKeys(Strict):
    """What sources share unless their own file says otherwise; ``options`` are Kafka client options."""

    bootstrap_servers: str = ""
    options: dict[str, Text] = Field(default_factory=dict)

    @field_validator("options")
    @classmethod
    def _allowed(cls, options: dict[str, str]) -> dict[str, str]:
        return kafka_options.allowed(options)


class ConnectKeys(Strict):
    """Kafka Connect's REST interface; only ``doctor`` and ``connect`` need it."""

    url: str | None = None


class TargetKeys(Strict):
    """A serving database; ``sslmode`` and ``options`` are libpq's. Let the password come from the environment."""

    kind: str = "postgres"
    host: Name
    port: int = Field(default=5432, ge=1, le=65535)
    database: Name
    user: Name
    password: SecretStr = SecretStr("")
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = "verify-full"
    options: dict[str, Text] = Field(default_factory=dict)


class S3Keys(Strict):
    """The object store behind ``s3a://``. Without keys the AWS default chain decides; without endpoint, AWS itself."""

    endpoint: str | None = None
    access_key: SecretStr | None = None
    secret_key: SecretStr | None = None
    region: Name = "us-east-1"
    path_style: bool = False


class BronzeKeys(Strict):
    """Kafka -> bronze. ``trigger_seconds`` counts only in continuous mode; 0 starts the next batch at once.
    ``max_objects_per_batch`` is for sources whose records lie in objects.
    """

    trigger_seconds: float = Field(default=1.0, ge=0)
    max_offsets_per_trigger: int = Field(default=200_000, ge=1)
    max_objects_per_batch: int = Field(default=5_000, ge=1)


class DeadLetterKeys(Strict):
    """When rejects stop a table: ``max_share`` is a share of one batch, 0 to 1 (debezium.md R5)."""

    max_share: float = Field(default=0.01, ge=0, le=1)


class Keys(Strict):
    """Every key of ``base.yaml`` and ``<env>.yaml``. ``formats``: what tables may be kept in; each has its JARs."""

    lake: LakeKeys = LakeKeys()
    kafka: KafkaKeys = KafkaKeys()
    connect: ConnectKeys = ConnectKeys()
    targets: dict[str, TargetKeys] = Field(default_factory=dict)
    spark: dict[str, Text] = Field(default_factory=dict)
    s3: S3Keys | None = None
    bronze: BronzeKeys = BronzeKeys()
    dead_letter: DeadLetterKeys = DeadLetterKeys()
    formats: tuple[Format, ...] = ("delta",)

    @field_validator("formats")
    @classmethod
    def _with_delta(cls, formats: tuple[str, ...]) -> tuple[str, ...]:
        if "delta" not in formats:
            raise ValueError("bronze and gold are kept in delta: give [delta, hudi], or leave it out")
        return tuple(sorted(set(formats)))


@dataclass(frozen=True)
class Shown:
    """One line of ``replicator config show``: the key, its value with secrets masked, where it came from."""

    key: str
    value: str
    origin: str


class Settings(Keys):
    """All that one run is told: the keys of the YAML files, and the product's nouns made of the other files."""

    env: str
    cache: SkipValidation[Path]
    sources: SkipValidation[tuple[SourceSpec, ...]] = ()
    models: SkipValidation[tuple[Model, ...]] = ()
    origins: SkipValidation[Mapping[KeyPath, Origin]] = Field(default_factory=dict, repr=False)

    def source(self, name: str) -> SourceSpec:
        """The source of that name. Raises ConfigError, naming those that exist."""
        found = next((s for s in self.sources if s.name == name), None)
        if found is None:
            raise ConfigError(f"there is no source {name!r}{nearest(name, [s.name for s in self.sources])}")
        return found

    def target(self, name: str) -> TargetKeys:
        """The serving database of that name. Raises ConfigError, naming those that exist."""
        if name not in self.targets:
            raise ConfigError(f"there is no target {name!r}{nearest(name, self.targets)}")
        return self.targets[name]

    def with_formats_of(self, declared: SourceSpec) -> Settings:
        """These settings, and the formats that a declaration asks for."""
        asked = {table.format for table in declared.tables if table.format}
        return self.model_copy(update={"formats": tuple(sorted({*self.formats, *asked}))})

    def shown(self) -> Iterator[Shown]:
        """Every value and where it came from, secrets masked."""
        keys = {name: _plain(getattr(self, name)) for name in Keys.model_fields}
        for path, value in leaves(keys):
            yield Shown(_key(path), _masked(path, value), self._origin(path))
        for source in self.sources:
            yield Shown(
                f"sources.{source.name}", source.objects or source.topics, self._origin(("sources", source.name))
            )
        for model in self.models:
            yield Shown(f"models.{model.name}", ", ".join(model.key), self._origin(("models", model.name)))

    def _origin(self, path: KeyPath) -> str:
        origin = self.origins.get(path)
        return str(origin) if origin else "default"


def load(conf: Path | None, env: str, environment: Mapping[str, str] | None = None) -> Settings:
    """The configuration of one environment: ``<conf>/base.yaml``, then ``<conf>/<env>.yaml`` over it.

    *conf* defaults to ``$REPLICATOR_CONF``, else ``./conf``; *environment* to the process's own. Raises ConfigError
    that lists every problem found.
    """
    variables = _environ() if environment is None else environment
    folder = conf if conf is not None else Path(variables.get("REPLICATOR_CONF") or "conf")
    problems = Problems()
    document = _layers(folder, env, problems).filled(variables, problems)
    keys = check(Keys, document, problems)
    origins = dict(document.origins)
    kafka = keys.kafka if keys is not None else KafkaKeys()
    found = sourcefile.sources(folder / "sources", kafka.bootstrap_servers, kafka.options, variables, problems)
    targets = None if keys is None else list(keys.targets)
    sources = tuple(source for source, _ in found)
    models = modelfile.models(folder / "models", sources, targets, variables, problems)
    _refuse_formats(keys, found, problems)
    problems.raise_if_any()
    origins |= {("sources", s.name): Origin(file) for s, file in found}
    origins |= {("models", m.name): Origin(str(folder / "models" / f"{m.name}.yaml")) for m in models}
    return _settings(keys or Keys(), env, cache_dir(variables), sources=sources, models=models, origins=origins)


def bare(lake: str | None = None) -> Settings:
    """The defaults, for commands that need no configuration (``run --recorded``, ``sql --lake``)."""
    keys = Keys() if lake is None else Keys(lake=LakeKeys(root=lake))
    if any(Path(keys.lake.root).glob("silver/*/*/.hoodie")):
        keys = keys.model_copy(update={"formats": ("delta", "hudi")})
    return _settings(keys, "none", cache_dir())


def cache_dir(environment: Mapping[str, str] | None = None) -> Path:
    """Where downloads and logs are kept: ``$REPLICATOR_CACHE``, else ``replicator`` below ``$XDG_CACHE_HOME``."""
    variables = _environ() if environment is None else environment
    own = variables.get("REPLICATOR_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(variables.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser() / "replicator"


def variable(name: str) -> str | None:
    """One variable of the process's environment; None when it is not set or empty."""
    return _environ().get(name) or None


def put(values: Mapping[str, str]) -> None:
    """Give child processes (the JVM, Python workers) these variables."""
    os.environ.update(values)  # noqa: TID251 - this module is where the environment is touched


def set_when_missing(values: Mapping[str, str]) -> None:
    """The same, for variables that the user has not set."""
    put({name: value for name, value in values.items() if not _environ().get(name)})


def _settings(keys: Keys, env: str, cache: Path, **nouns: Any) -> Settings:
    return Settings(env=env, cache=cache, **{name: getattr(keys, name) for name in Keys.model_fields}, **nouns)


def _environ() -> Mapping[str, str]:
    return os.environ  # noqa: TID251 - this module is where the environment is read


def _layers(folder: Path, env: str, problems: Problems) -> Document:
    base, above = folder / "base.yaml", folder / f"{env}.yaml"
    if not folder.is_dir():
        raise ConfigError(
            f"there is no configuration folder {folder}",
            mend="Give --conf DIR or set REPLICATOR_CONF, or run where a folder conf/ is.",
        )
    if not above.is_file():
        known = [f.stem for f in folder.glob("*.yaml") if f.stem != "base" and "example" not in f.suffixes[0]]
        raise ConfigError(f"there is no environment {env!r}: {above} does not exist{nearest(env, known)}")
    below = read(base, problems) if base.is_file() else Document()
    return read(above, problems).over(below)


def _refuse_formats(keys: Keys | None, found: Iterable[tuple[SourceSpec, str]], problems: Problems) -> None:
    known = ("delta",) if keys is None else keys.formats
    for source, file in found:
        for table in source.tables:
            if table.format and table.format not in known:
                problems.add(f"{table.table} is kept in {table.format}: add `formats: [delta, {table.format}]`", file)


def _plain(value: Any) -> Any:
    """The keys as plain mappings, secrets still wrapped; pydantic's own dump would render them."""
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def _masked(path: KeyPath, value: Any) -> str:
    free = path[0] == "spark" or "options" in path
    if isinstance(value, SecretStr):
        return "***" if value.get_secret_value() else ""
    if free and _SECRET_KEY.search(str(path[-1])):
        return "***"
    return "" if value is None else str(_text(value))


def _key(path: KeyPath) -> str:
    return ".".join(map(str, path))
