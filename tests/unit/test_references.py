"""Which values of a connector are secrets, and how they are shown."""

from __future__ import annotations

import pytest

from replicator.spec.references import is_reference, mask, plain_secrets

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="{}";'
IAM = "software.amazon.msk.auth.iam.IAMLoginModule required;"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("database.password", "topsecret"),
        ("schema.history.internal.producer.ssl.keystore.password", "topsecret"),
        ("a.client.secret", "topsecret"),
        ("value.converter.basic.auth.user.info", "u:topsecret"),
        ("x.sasl.jaas.config", JAAS.format("topsecret")),
        ("database.url", "jdbc:oracle:thin:u/x@//h?password=topsecret"),
        ("value.converter.schema.registry.url", "http://u:topsecret@registry:8081"),
        ("x.sasl.jaas.config", JAAS.format("a&b c,d; 'topsecret")),
        ("x.sasl.jaas.config", JAAS.format(r"a\"topsecret")),
        ("database.url", "jdbc:oracle:thin:u/x@//h?password='a topsecret'"),
        ("database.url", "jdbc:sqlserver://u:a@topsecret@h:1433"),
        ("database.url", "jdbc:sqlserver://h:1433;password=a'\"topsecret;encrypt=true"),
        ("schema.history.internal.producer.ssl.keystore.key", "-----BEGIN PRIVATE KEY-----topsecret"),
        ("value.converter.schema.registry.ssl.private.key", "topsecret"),
        ("transforms.x.redis.url", "redis://:topsecret@h:6379"),
        ("database.url", "jdbc:oracle:thin:u/topsecret@//h:1521/x"),
        ("transforms.x.passwd", "topsecret"),
        ("transforms.x.pwd", "topsecret"),
    ],
)
def test_a_plain_secret_is_found_and_never_shown(key: str, value: str) -> None:
    """By the key's name, or inside of a value."""
    assert list(plain_secrets({key: value})) == [key]
    assert "topsecret" not in mask(key, value)
    assert "***" in mask(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("database.password", "${file:/run/secrets.properties:shop}"),
        ("database.password", "${env:SHOP}"),
        ("database.password", ""),
        ("x.sasl.jaas.config", JAAS.format("${file:/run/s:k}")),
        ("x.sasl.jaas.config", IAM),
        ("sasl.oauthbearer.token.endpoint.url", "https://idp/token"),
        ("delete.tombstone.handling.mode", "rewrite"),
        ("transforms.outbox.route.topic.replacement", "outbox.event.${routedByValue}"),
        ("message.key.columns", "a.b:id"),
        ("database.url", "jdbc:oracle:thin:@//h:1521/x"),
        ("x.sasl.jaas.config", JAAS.format("${file:/run/s:k}") + ' serviceName="kafka";'),
        ("producer.override.ssl.keystore.key", "${file:/run/s:pem}"),
        ("schema.history.internal.producer.ssl.keystore.location", "/run/s.pem"),
    ],
)
def test_what_is_no_secret_is_shown_as_it_is(key: str, value: str) -> None:
    """References stay readable: they say where the secret is, not what."""
    assert list(plain_secrets({key: value})) == []
    assert mask(key, value) == value


@pytest.mark.parametrize("value", ["${SHOP}", "x${env:SHOP}", "${env:SHOP}x", "${env:}", "env:SHOP", ""])
def test_only_a_whole_reference_is_one(value: str) -> None:
    """Text around it would be part of the password."""
    assert not is_reference(value)
