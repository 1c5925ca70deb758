"""The Kafka client options that a configuration may set: they change how a broker is reached, never what is read."""

from __future__ import annotations

import re

from replicator.spelling import suggest

# Offsets, consumer groups and data loss are handled by the application and may not be set.
_OPTIONS = frozenset(
    {
        "security.protocol", "sasl.mechanism", "sasl.jaas.config", "sasl.client.callback.handler.class",
        "sasl.kerberos.service.name", "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type",
        "ssl.truststore.certificates", "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type",
        "ssl.key.password", "ssl.endpoint.identification.algorithm", "ssl.enabled.protocols", "ssl.protocol",
        "client.id", "client.dns.lookup", "client.rack", "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes",
        "max.partition.fetch.bytes", "max.poll.records", "metadata.max.age.ms", "connections.max.idle.ms",
        "reconnect.backoff.ms", "reconnect.backoff.max.ms", "request.timeout.ms", "retry.backoff.ms",
        "default.api.timeout.ms", "receive.buffer.bytes", "session.timeout.ms", "socket.connection.setup.timeout.ms",
    }
)  # fmt: skip

# A JAAS entry names a class to load: a module that performs JNDI lookups could run foreign code.
_LOGIN_MODULES = (
    "org.apache.kafka.common.security.plain.PlainLoginModule",
    "org.apache.kafka.common.security.scram.ScramLoginModule",
    "com.sun.security.auth.module.Krb5LoginModule",
    "software.amazon.msk.auth.iam.IAMLoginModule",
)
_CALLBACK_HANDLERS = ("software.amazon.msk.auth.iam.IAMClientCallbackHandler",)


def validate(options: dict[str, str]) -> dict[str, str]:
    """Return the options, if each of them is an allowed client option. Raises ValueError."""
    for option, value in options.items():
        if option not in _OPTIONS:
            raise ValueError(f"the Kafka option {option!r} is not allowed{suggest(option, _OPTIONS)}")
        if option == "sasl.jaas.config" and not re.fullmatch(_jaas(), value.strip(), re.DOTALL):
            raise ValueError(f"{option} must be one entry of {', '.join(_LOGIN_MODULES)}")
        if option == "sasl.client.callback.handler.class" and value not in _CALLBACK_HANDLERS:
            raise ValueError(f"{option} must be {', '.join(_CALLBACK_HANDLERS)}")
    return options


def _jaas() -> str:
    modules = "|".join(re.escape(module) for module in _LOGIN_MODULES)
    return rf'(?:{modules})\s+(?:required|requisite|sufficient|optional)(?:\s+[\w.]+=(?:"[^"]*"|[^\s";]+))*\s*;'
