"""ProvisioningRequests on a real API server, and an autoscaler that answers them.

The definition is written from the API's documentation: the fields that a controller sets, with
their rules. `status` takes any fields.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final

from shared.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, PROVISIONING_REQUESTS
from tests.controlplane.client import ApiError, Object, RawClient
from tests.support.open_crd import open_crd
from tests.support.waiting import eventually

_NAME: Final = {
    "type": "string",
    "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    "maxLength": 253,
}
_UNCHANGED: Final = [{"rule": "self == oldSelf", "message": "Value is immutable"}]
_SPEC: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["podSets", "provisioningClassName"],
    "properties": {
        "podSets": {
            "type": "array",
            "minItems": 1,
            "maxItems": 32,
            "x-kubernetes-validations": _UNCHANGED,
            "items": {
                "type": "object",
                "required": ["count", "podTemplateRef"],
                "properties": {
                    "count": {"type": "integer", "format": "int32", "minimum": 1},
                    "podTemplateRef": {"type": "object", "properties": {"name": _NAME}},
                },
            },
        },
        "provisioningClassName": {**_NAME, "x-kubernetes-validations": _UNCHANGED},
        "parameters": {
            "type": "object",
            "maxProperties": 100,
            "additionalProperties": {"type": "string", "maxLength": 255},
            "x-kubernetes-validations": _UNCHANGED,
        },
    },
}


def definition() -> Object:
    """The CustomResourceDefinition of ProvisioningRequests."""
    crd = open_crd(PROVISIONING_REQUESTS, status=True)
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": _SPEC, "status": anything},
    }
    return crd


@asynccontextmanager
async def installed_kind(api: RawClient) -> AsyncIterator[None]:
    """Have the kind served; afterwards it is gone."""
    await api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), definition())
    try:
        # Its storage is being initialised for a moment, which is 429.
        await eventually(lambda: _listing(api, 200), because="the kind is served")
        yield
    finally:
        await api.delete(CUSTOM_RESOURCE_DEFINITIONS.path(name=PROVISIONING_REQUESTS.title))
        await eventually(lambda: _listing(api, 404), because="the kind is gone")


async def _listing(api: RawClient, status: int) -> bool:
    """Whether a list of all requests is answered by this status."""
    try:
        await api.get(PROVISIONING_REQUESTS.path())
    except ApiError as error:
        return error.status == status
    return status == 200


async def requests_in(api: RawClient, namespace: str) -> list[Object]:
    """The requests of a namespace, in the order of their creation."""
    found = await api.get(PROVISIONING_REQUESTS.path(namespace))
    return sorted(found["items"], key=lambda one: int(one["metadata"]["resourceVersion"]))


async def answer(
    api: RawClient, namespace: str, name: str, condition: str, message: str = ""
) -> None:
    """Set a condition of a request to True, as cluster-autoscaler does."""
    path = PROVISIONING_REQUESTS.path(namespace, name)
    stored = await api.get(path)
    conditions = stored.get("status", {}).get("conditions", [])
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions.append(
        {
            "type": condition,
            "status": "True",
            "reason": condition,
            "message": message,
            "lastTransitionTime": now,
        }
    )
    await api.patch(f"{path}/status", {"status": {"conditions": conditions}})
