"""boto3 clients of AWS's services; their errors, by botocore's classes and AWS's codes, become errors of this project.

Credentials come from boto3's own chain: environment, profile, role.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from replicator import s3
from replicator.errors import ConfigError, ReplicatorError, Unreachable

_ACCESS_DENIED = frozenset(
    {"AccessDenied", "AccessDeniedException", "ExpiredToken", "ExpiredTokenException", "GlueEncryptionException",
     "IncompleteSignature", "InvalidAccessKeyId", "InvalidClientTokenId", "InvalidSignatureException", "InvalidToken",
     "MissingAuthenticationToken", "MissingAuthenticationTokenException", "SignatureDoesNotMatch",
     "UnrecognizedClientException"}
)  # fmt: skip
_RETRYABLE = frozenset(
    {"InternalServerException", "InternalServiceException", "OperationTimeoutException", "RequestLimitExceeded",
     "RequestTimeout", "ServiceUnavailable", "Throttling", "ThrottlingException", "TooManyRequestsException"}
)  # fmt: skip
_THROTTLED, _SERVER_ERROR, _NOT_IMPLEMENTED = 429, 500, 501
"""Statuses that are decisive whatever the code, such as that of S3's SlowDown; what a service does not implement, a
retry will not find either.
"""

_REGION_VARIABLE = "AWS_DEFAULT_REGION"
"""boto3 does not read ``AWS_REGION``."""

ServiceError = Callable[[str, str, str], ReplicatorError]


def refusal(name: str, fix: str, error: type[ReplicatorError] = ConfigError) -> ServiceError:
    """Return a function that makes errors of that class for refusals: "<name> refuses", AWS's code and message, and how
    to fix it.
    """
    return lambda code, message, where: error(f"{name} refused the request: {code}: {message}", where=where, fix=fix)


@dataclass(frozen=True)
class Service:
    """One of AWS's services: its name for messages, the setting of its region if there is one, and the hint for missing
    rights.

    ``refused`` makes the error for any code that is specific to the service: from the code, AWS's message, and where
    (:func:`refusal`).
    """

    name: str
    region: str | None
    rights: str
    refused: ServiceError

    def client(self, region: str | None, endpoint: str | None, **config: Any) -> Any:
        """Return a boto3 client; without a region and an endpoint, AWS's own chain decides. Raises ConfigError."""
        import boto3  # noqa: PLC0415 - on demand
        from botocore.config import Config  # noqa: PLC0415 - as above

        name = self.name.lower().replace(" ", "-")
        with self.translated(endpoint or self.name):
            try:
                return boto3.client(name, region_name=region, endpoint_url=endpoint, config=Config(**config))
            except ValueError as error:
                raise ConfigError(f"the request to {self.name} failed: {error}", where=endpoint) from error

    @contextmanager
    def translated(self, where: str) -> Iterator[None]:
        """Translate errors of botocore inside of the block."""
        from botocore import exceptions as aws  # noqa: PLC0415 - on demand

        credentials = aws.NoCredentialsError, aws.PartialCredentialsError, aws.CredentialRetrievalError
        try:
            yield
        except aws.ClientError as error:
            raise self._error_of_code(error, where) from error
        except aws.NoRegionError as error:
            region = " or the variable ".join(filter(None, (self.region, _REGION_VARIABLE)))
            raise ConfigError(f"No AWS region is configured for {self.name}.", fix=f"Set {region}.") from error
        except credentials as error:
            s3.check_credentials_agent(error, where)
            fix = "Provide them as for any AWS tool: environment variables, a profile or a role."
            raise ConfigError("No AWS credentials were found.", fix=fix) from error
        except aws.ParamValidationError as error:
            raise self.refused(type(error).__name__, str(error), where) from error
        except (aws.HTTPClientError, aws.ConnectionError, aws.IncompleteReadError) as error:
            what = f"{self.name} does not answer: {error}"
            raise Unreachable(what, where=where, fix="Check the network and its endpoint, then run again.") from error
        except aws.BotoCoreError as error:
            raise ConfigError(f"the request to {self.name} failed: {error}", where=where) from error

    def _error_of_code(self, error: Any, where: str) -> ReplicatorError:
        details = error.response.get("Error", {})
        code, message = str(details.get("Code", "?")), str(details.get("Message", ""))
        if code in _ACCESS_DENIED:
            return ConfigError(f"{self.name} denied access: {code}: {message}", where=where, fix=self.rights)
        status = s3.status(error)
        if code in _RETRYABLE or status == _THROTTLED or (status >= _SERVER_ERROR and status != _NOT_IMPLEMENTED):
            return Unreachable(f"{self.name} is busy: {code}: {message}", where=where, fix="Try again.")
        return self.refused(code, message, where)
