"""An object store without Spark, through boto3: with the settings of ``s3``, else AWS's own chain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from replicator.endpoint import check_responds
from replicator.errors import ConfigError, ReplicatorError, StoreRefused, Unreachable

if TYPE_CHECKING:
    from replicator.config.settingkeys import S3Keys

TIMEOUT_SECONDS = 4.0
"""The timeout of one attempt, for the connection and for the answer each."""
ATTEMPTS = 4
"""Attempts of a request that gets no answer, or one like 503; including the pauses between them they take less than the
24 seconds for which the holder of a 30-second lease can rely on it.
"""

_THROTTLED, _SERVER_ERROR = 429, 500
CREDENTIALS_HINT = (
    "Set s3.access_key and s3.secret_key, or provide credentials by environment variables or the role of the machine; "
    "export those of a profile (docs/s3.md)."
)
_AWS_CONFIG_HINT = (
    "Correct or unset AWS_PROFILE, AWS_CONFIG_FILE and other AWS variables, or correct their files or s3.region."
)
_NO_CREDENTIALS = re.compile(r"No AWS Credentials provided|//169[.]254[.]169[.]254/")
"""Messages of Hadoop's client, and of delta-rs, which asks a machine for its role last: neither reads a profile."""
_NO_BUCKET = re.compile(r"\bNoSuchBucket\b|\bNO_SUCH_BUCKET\b")
"""The error of a missing bucket as S3 and pyarrow spell it."""


def check_reachable(endpoint: str) -> None:
    """Raise Unreachable if nothing listens at the object store's address, or it hangs, before another client waits for
    it; ConfigError for an invalid address.
    """
    check_responds(endpoint, "the object store", "Check that it runs and `s3.endpoint` is right.")


def client(s3: S3Keys | None) -> Any:
    """Return a client that soon reports a store that does not answer. Raises Unreachable for an endpoint, or an agent
    for credentials, that does not answer, and ConfigError for an invalid setting, including AWS's own.
    """
    import boto3  # noqa: PLC0415 - takes half a second, which --help need not wait
    import botocore.config  # noqa: PLC0415
    import botocore.exceptions  # noqa: PLC0415

    style = "path" if s3 is not None and s3.path_style else "auto"
    retries = {"mode": "standard", "total_max_attempts": ATTEMPTS}
    patience = {"connect_timeout": TIMEOUT_SECONDS, "read_timeout": TIMEOUT_SECONDS, "retries": retries}
    if s3 is not None and s3.endpoint:
        check_reachable(s3.endpoint)
    config = botocore.config.Config(s3={"addressing_style": style}, **patience)
    given = _credentials(s3)
    try:
        return boto3.client("s3", **given, config=config)
    except (botocore.exceptions.BotoCoreError, ValueError) as error:  # no request has been sent yet
        where = given.get("endpoint_url", "AWS")
        check_credentials_agent(error, where)
        raise ConfigError(
            f"cannot create a client for the object store: {error}", where=where, fix=_AWS_CONFIG_HINT
        ) from error


def split_location(location: str) -> tuple[str, str]:
    """Bucket and key of ``s3a://bucket/some/key``."""
    bucket, _, key = location.removeprefix("s3a://").partition("/")
    return bucket, key


def read_object(client: Any, bucket: str, key: str) -> tuple[str, str]:
    """Return text and ETag of an object; bytes that are not UTF-8 are replaced. A download that breaks off is retried,
    which boto3 leaves to its caller.
    """
    import botocore.exceptions  # noqa: PLC0415 - as above

    for _ in range(ATTEMPTS - 1):
        with suppress(botocore.exceptions.ResponseStreamingError, botocore.exceptions.IncompleteReadError):
            return _get_object(client, bucket, key)
    return _get_object(client, bucket, key)


@contextmanager
def translate_errors(where: str, what: str, fix: str) -> Iterator[None]:
    """Translate errors of an object store inside of the block: ConfigError for a refusal (with *what* and *fix*), for
    missing credentials and for an invalid address, Unreachable for what may succeed later.
    """
    from botocore import exceptions as aws  # noqa: PLC0415 - as above

    try:
        yield
    except aws.ClientError as error:
        code = error.response.get("Error", {}).get("Code", "?")
        if status(error) == _THROTTLED or (status(error) >= _SERVER_ERROR and code != "NotImplemented"):
            message = f"The object store does not answer: {code}."
            raise Unreachable(message, where=where, fix="Try again later.") from error
        raise ConfigError(f"The object store refused to {what}: {code}.", where=where, fix=fix) from error
    except (aws.NoCredentialsError, aws.PartialCredentialsError) as error:
        raise ConfigError(
            "No credentials for the object store were found.", where=where, fix=CREDENTIALS_HINT
        ) from error
    except (aws.CredentialRetrievalError, aws.TokenRetrievalError, aws.SSOError) as error:
        check_credentials_agent(error, where)
        raise ConfigError(f"invalid AWS settings: {error}", where=where, fix=CREDENTIALS_HINT) from error
    except aws.ParamValidationError as error:  # nothing was sent
        reason = str(error).splitlines()[-1].partition(": Bucket name must")[0]
        raise ConfigError(f"invalid address in an object store: {reason}", where=where, fix="Correct it.") from error
    except (aws.BotoCoreError, ValueError) as error:
        message = f"The object store does not answer: {type(error).__name__}."
        raise Unreachable(message, where=where, fix="Check that it runs and s3.endpoint is right.") from error


def check_credentials_agent(error: Exception, where: str) -> None:
    """Raise Unreachable if *error* comes from an agent that provides credentials, as in a container, and did not
    answer.
    """
    from botocore.exceptions import MetadataRetrievalError  # noqa: PLC0415 - as above

    if isinstance(error.__context__, MetadataRetrievalError):
        raise Unreachable(f"No credentials are available: {error}", where=where, fix="Try again later.") from error


def access_error(why: str, where: str | None = None) -> StoreRefused:
    """Return the error for an object store that refuses an operation, or for a bucket that does not exist, depending on
    the text *why*.
    """
    if _NO_BUCKET.search(why):
        named = split_location(where)[0] if where is not None and where.startswith("s3a://") else None
        missing = f"bucket {named} does not exist" if named else f"a bucket does not exist: {why}"
        fix = "Create it, or set the right one (`lake.root`, a source's `objects`) or store (`s3.endpoint`)."
        return StoreRefused(missing, where=where, fix=fix)
    fix = (
        "Check that `s3.access_key` and `s3.secret_key`, or the driver's role, are valid and grant the required "
        "rights, and that the bucket exists."
    )
    return StoreRefused(f"the object store denied access to the driver: {why}", where=where, fix=fix)


def read_error(why: str, where: str, *, is_refused: bool) -> ReplicatorError:
    """Return the error for a lake whose store refuses the driver, or gave no answer or an unexpected one."""
    if is_refused:
        return access_error(why, where)
    fix = CREDENTIALS_HINT if lacks_credentials(why) else "Check the lake's root and the object store's settings."
    return Unreachable(f"the lake does not answer: {why}", where=where, fix=fix)


def lacks_credentials(why: str) -> bool:
    """Whether the text of an error says that a client found no credentials."""
    return _NO_CREDENTIALS.search(why) is not None


def status(error: Any) -> int:
    """The HTTP status of botocore's ClientError."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _get_object(client: Any, bucket: str, key: str) -> tuple[str, str]:
    found = client.get_object(Bucket=bucket, Key=key)
    return found["Body"].read().decode(errors="replace"), found["ETag"]


def _credentials(s3: S3Keys | None) -> dict[str, str]:
    if s3 is None:
        return {}
    given = {
        "endpoint_url": s3.endpoint,
        "region_name": s3.region,
        "aws_access_key_id": s3.access_key.get_secret_value() if s3.access_key else None,
        "aws_secret_access_key": s3.secret_key.get_secret_value() if s3.secret_key else None,
    }
    return {name: value for name, value in given.items() if value is not None}
