"""Queries of a Kafka cluster through the admin client of the JVM, the only Kafka client in use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError

from replicator.endpoint import check_any_reachable, parse_addresses
from replicator.errors import ConfigError, LoginRefused, Unreachable
from replicator.jvm import causes
from replicator.spelling import suggest

TIMEOUT_MS = 15_000
_CALL, _REQUEST = "default.api.timeout.ms", "request.timeout.ms"
FIX = "Check that the broker runs and `bootstrap_servers` is right, then run again."
_OPTIONS = (
    "Fix the `options` of Kafka (`security.protocol`, `sasl.*`, `ssl.*`) or the rights of its user, then run again."
)
_IAM = "software.amazon.msk.auth.iam"
"""The package of MSK's login, which a client names if it lacks it."""
_IAM_FIX = "Only stages on EMR have the login to MSK, from `replicator aws package`."
_REFUSED = re.compile(
    r"org[.]apache[.]kafka[.]common[.]errors[.]\w*(?:Authentication|Authorization|SaslMechanism|SaslState)Exception"
)

_FINAL = re.compile(
    r"org[.]apache[.]kafka[.]common[.]errors[.]"
    r"(?:InvalidReplicationFactor|InvalidTopic|PolicyViolation|RecordTooLarge)Exception"
)
"""Refusals of a new topic or of a record, which a repeated request would meet again."""

_UNRESOLVABLE = "No resolvable bootstrap urls"
"""The message of Kafka's client for bootstrap servers whose names do not resolve."""

_BUSY = "Too many connects"
"""The message of MSK for more IAM logins per second than a broker accepts (docs/aws.md); a later login succeeds."""


@contextmanager
def admin(jvm: Any, bootstrap_servers: str, options: Mapping[str, str]) -> Iterator[Any]:
    """An admin client for the block. Raises Unreachable if Kafka does not answer, ConfigError for an invalid address,
    LoginRefused for options with which no client starts, and what :func:`client_error` returns.
    """
    parse_addresses(bootstrap_servers, "Kafka", FIX)
    settings = jvm.java.util.Properties()
    for name, value in {**_timeouts(options), **options, "bootstrap.servers": bootstrap_servers}.items():
        settings.put(name, value)
    try:
        client = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
    except Py4JJavaError as error:
        raise startup_error(error, bootstrap_servers) from error
    try:
        yield client
    except Py4JJavaError as error:
        raise client_error(error, bootstrap_servers) from error
    finally:
        client.close(jvm.java.time.Duration.ofSeconds(1))


def _timeouts(options: Mapping[str, str]) -> dict[str, str]:
    """Our timeouts, adjusted to one that ``options`` set: a client refuses to wait less for a call than for a request
    of it.
    """
    call, request = (int(options[name]) if options.get(name, "").isdecimal() else None for name in (_CALL, _REQUEST))
    return {
        _CALL: str(max(TIMEOUT_MS, request or 0)),
        _REQUEST: str(TIMEOUT_MS if call is None else min(TIMEOUT_MS, call)),
    }


def check_reachable(bootstrap_servers: str) -> None:
    """Raise Unreachable if none of the addresses accepts a connection; Kafka's clients take longer to find out."""
    check_any_reachable(bootstrap_servers, "Kafka", FIX)


def startup_error(error: Exception, bootstrap_servers: str) -> LoginRefused:
    """The error for a Kafka client that could not be created. Raises Unreachable if the names of its servers do not
    resolve.
    """
    why = causes.describe_root_cause(error)
    if _UNRESOLVABLE in why:
        check_reachable(bootstrap_servers)
    what = f"the Kafka client does not start with these options: {why}"
    return LoginRefused(what, where=bootstrap_servers, fix=_IAM_FIX if _IAM in why else _OPTIONS)


def client_error(error: Exception, bootstrap_servers: str) -> Unreachable | ConfigError:
    """The error for a failure of Kafka's client: LoginRefused if a broker refuses the login or the operation,
    ConfigError if it refuses a topic or a record; otherwise Unreachable, because no broker has answered or it is busy.
    """
    chain = list(causes.chain(causes.find_java_exception(error)))
    refusal = next((each for each in chain if _REFUSED.fullmatch(str(each.getClass().getName()))), None)
    if refusal is None:
        if not chain or not _FINAL.fullmatch(str(chain[-1].getClass().getName())):
            return unreachable_error(bootstrap_servers)
        what = f"Kafka refused the request: {chain[-1].getMessage()}"
        return ConfigError(what, where=bootstrap_servers, fix="Correct what it names, then run again.")
    words = ": ".join(dict.fromkeys(str(each.getMessage()) for each in (refusal, chain[-1])))
    if is_busy(words):
        fix = "Run again; a larger broker accepts more logins per second."
        return Unreachable(f"Kafka is busy: {words}", where=bootstrap_servers, fix=fix)
    return LoginRefused(f"Kafka refused the client: {words}", where=bootstrap_servers, fix=_OPTIONS)


def is_refusal(text: str) -> bool:
    """Whether the text of a failure names a refused login or operation."""
    return _REFUSED.search(text) is not None


def is_busy(text: str) -> bool:
    """Whether the text of a failure says that logins came too fast."""
    return _BUSY in text


def unreachable_error(bootstrap_servers: str) -> Unreachable:
    """The error for a cluster that does not answer."""
    return Unreachable("Kafka does not answer", where=bootstrap_servers, fix=FIX)


def topic_id(described: Any) -> str | None:
    """The id of a topic as the admin client describes it (J5). Brokers before 2.8 have none, which the client returns
    as an id of zeros; after an upgrade the topic gets an id, and is still the same topic.
    """
    uuid = described.topicId()
    return None if uuid.getMostSignificantBits() == uuid.getLeastSignificantBits() == 0 else str(uuid)


def missing_topic(topic: str, known: Any, bootstrap_servers: str) -> Unreachable:
    """The error for a topic that is not among the ``known`` ones of a cluster."""
    fix = "Create it or start its producer, then run again. Kafka also hides a topic that the login may not DESCRIBE."
    return Unreachable(
        f"topic {topic!r} does not exist{suggest(topic, map(str, known))}", where=bootstrap_servers, fix=fix
    )
