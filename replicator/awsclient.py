"""Clients of AWS's services by boto3, and their errors as ours: by botocore's classes and by AWS's codes.

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
    {"AccessDenied", "AccessDeniedException", "ExpiredTokenException", "GlueEncryptionException", "IncompleteSignature",
     "InvalidClientTokenId", "InvalidSignatureException", "MissingAuthenticationToken",
     "MissingAuthenticationTokenException", "UnrecognizedClientException"}
)  # fmt: skip
_RETRYABLE = frozenset(
    {"InternalServerException", "InternalServiceException", "OperationTimeoutException", "RequestLimitExceeded",
     "RequestTimeout", "ServiceUnavailable", "Throttling", "ThrottlingException", "TooManyRequestsException"}
)  # fmt: skip
_THROTTLED, _SERVER_ERROR, _NOT_IMPLEMENTED = 429, 500, 501
"""Answers that say the same whatever the code, such as S3's SlowDown; what a service has not got it will not have."""

ServiceError = Callable[[str, str, str], ReplicatorError]


def refusal(name: str, mend: str, error: type[ReplicatorError] = ConfigError) -> ServiceError:
    """Errors of that class for whatever a service refuses: "<name> refuses", AWS's code and message, how to mend it."""
    return lambda code, message, where: error(f"{name} refuses: {code}: {message}", where=where, mend=mend)


@dataclass(frozen=True)
class Service:
    """One of AWS's services: how people call it, where the configuration says its region, and what to do about rights.

    ``refused`` is the error of any other code than those that every service has: from the code, AWS's message, and
    where (:func:`refusal`).
    """

    name: str
    region: str
    rights: str
    refused: ServiceError

    def client(self, region: str | None, endpoint: str | None, **config: Any) -> Any:
        """A client of boto3; without a region and an endpoint AWS's own chain decides. Raises ConfigError."""
        import boto3  # noqa: PLC0415 - on demand
        from botocore.config import Config  # noqa: PLC0415 - as above

        name = self.name.lower().replace(" ", "-")
        with self.translated(endpoint or self.name):
            try:
                return boto3.client(name, region_name=region, endpoint_url=endpoint, config=Config(**config))
            except ValueError as error:
                raise ConfigError(f"{self.name} cannot be asked: {error}", where=endpoint) from error

    @contextmanager
    def translated(self, where: str) -> Iterator[None]:
        """Errors of botocore inside of the block as ours."""
        from botocore import exceptions as aws  # noqa: PLC0415 - on demand

        credentials = aws.NoCredentialsError, aws.PartialCredentialsError, aws.CredentialRetrievalError
        try:
            yield
        except aws.ClientError as error:
            raise self._error_of_code(error, where) from error
        except aws.NoRegionError as error:
            raise ConfigError(f"It is not said in which region {self.name} is.", mend=f"Set {self.region}.") from error
        except credentials as error:
            s3.check_credentials_agent(error, where)
            mend = "Give them as to any AWS tool: variables, a profile, or a role."
            raise ConfigError("There are no AWS credentials.", mend=mend) from error
        except aws.ParamValidationError as error:
            raise self.refused(type(error).__name__, str(error), where) from error
        except (aws.HTTPClientError, aws.ConnectionError, aws.IncompleteReadError) as error:
            what = f"{self.name} does not answer: {error}"
            raise Unreachable(what, where=where, mend="Check the network and its endpoint, then run again.") from error
        except aws.BotoCoreError as error:
            raise ConfigError(f"{self.name} cannot be asked: {error}", where=where) from error

    def _error_of_code(self, error: Any, where: str) -> ReplicatorError:
        about = error.response.get("Error", {})
        code, message = str(about.get("Code", "?")), str(about.get("Message", ""))
        if code in _ACCESS_DENIED:
            return ConfigError(f"{self.name} does not let us in: {code}: {message}", where=where, mend=self.rights)
        status = s3.status(error)
        if code in _RETRYABLE or status == _THROTTLED or (status >= _SERVER_ERROR and status != _NOT_IMPLEMENTED):
            return Unreachable(f"{self.name} is busy: {code}: {message}", where=where, mend="Try again.")
        return self.refused(code, message, where)
