"""Kubernetes' `Status`: the answer to a request that failed."""

from typing import Any

import msgspec

from services.api.errors import RequestFailed


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`meta.k8s.io/v1` Status of a failure."""

    kind: str = "Status"
    api_version: str = "v1"
    metadata: dict[str, Any] = {}
    status: str = "Failure"
    message: str
    reason: str
    details: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    code: int


def status_of(failure: RequestFailed) -> Status:
    """The Status of a failure."""
    details: dict[str, Any] = dict(failure.details)
    if failure.retry_after_s is not None:
        details["retryAfterSeconds"] = failure.retry_after_s
    if failure.causes:
        details["causes"] = [
            {"reason": "FieldValueInvalid", "field": field, "message": message}
            for field, message in failure.causes
        ]
    return Status(
        message=failure.message,
        reason=failure.reason,
        code=failure.status,
        # Clients decode it strictly: an object, or nothing.
        details=details or msgspec.UNSET,
    )
