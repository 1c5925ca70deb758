"""The IAM login of MSK's clients: the same four options for Spark, Kafka Connect, Kafka's own tools and Kafka UI."""

from __future__ import annotations

from collections.abc import Mapping

from replicator.errors import ConfigError
from replicator.spec import references

IAM: Mapping[str, str] = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}
"""The options by their names in Kafka."""

PORT = 9098
"""The brokers' port for IAM clients."""

OFFSETS = "__amazon_msk_connect_offsets_replicator"
"""The topic in which workers keep the offsets of source connectors, below a prefix that their roles may use. MSK
Connect's default is a new one for each connector, so that one that replaces another would start from the beginning.
"""

_OWN_CLIENTS = {
    "schema.history.internal": ("producer", "consumer"),
    "signal": ("consumer",),
}
"""The Kafka clients that a connector has beside the worker's, by their prefix."""


def properties(values: Mapping[str, str]) -> str:
    """A properties file, one option per line."""
    return "".join(f"{key}={value}\n" for key, value in values.items())


def spark_options() -> dict[str, str]:
    """The options for Spark's Kafka reader."""
    return {f"kafka.{key}": value for key, value in IAM.items()}


def kafka_ui_environment(bootstrap_servers: str, cluster: str = "msk") -> dict[str, str]:
    """The environment of Kafka UI, read-only; credentials are those of the machine that it runs on."""
    require_iam(bootstrap_servers)
    options = {f"KAFKA_CLUSTERS_0_PROPERTIES_{key.upper().replace('.', '_')}": value for key, value in IAM.items()}
    return {
        "KAFKA_CLUSTERS_0_NAME": cluster,
        "KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS": bootstrap_servers,
        "KAFKA_CLUSTERS_0_READONLY": "true",
        **options,
    }


def worker_config(region: str) -> dict[str, str]:
    """The worker configuration of MSK Connect, which configures brokers and IAM itself: converters, the topic of the
    offsets, and the provider that resolves references ``${secretsmanager:NAME:KEY}``.
    """
    json = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "key.converter": json,
        "value.converter": json,
        "offset.storage.topic": OFFSETS,
        "config.providers": "secretsmanager",
        "config.providers.secretsmanager.class": "com.amazonaws.kafka.config.providers.SecretsManagerConfigProvider",
        "config.providers.secretsmanager.param.region": region,
    }


def connector_config(config: Mapping[str, str]) -> dict[str, str]:
    """Return a connector's configuration for MSK Connect: clients of the schema history and of signals log in by IAM,
    and the renewed lookup of a secret causes no restart. Raises ConfigError for a secret that is not a reference.
    """
    bare = sorted(references.plain_secrets(config))
    if bare:
        raise ConfigError(
            f"these values in the connector's configuration must be references: {', '.join(bare)}",
            fix="Write ${secretsmanager:NAME:KEY}: anyone who may describe the connector can read its configuration.",
        )
    logins: dict[str, str] = {}
    for prefix, clients in _OWN_CLIENTS.items():
        if servers := config.get(f"{prefix}.kafka.bootstrap.servers"):
            require_iam(servers)
            logins |= {f"{prefix}.{who}.{key}": value for who in clients for key, value in IAM.items()}
    return {**config, **logins, "config.action.reload": "none"}


def require_iam(bootstrap_servers: str) -> None:
    """Raise ConfigError unless every broker is given with the port of IAM."""
    named = [each.strip() for each in bootstrap_servers.split(",") if each.strip()]
    other = [each for each in named if not each.endswith(f":{PORT}")]
    if other or not named:
        raise ConfigError(
            f"brokers accept IAM clients on port {PORT}, not {', '.join(other) or 'none'}",
            where="kafka.bootstrap_servers",
            fix="`aws kafka get-bootstrap-brokers` lists them as BootstrapBrokerStringSaslIam.",
        )
