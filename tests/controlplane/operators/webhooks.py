"""Webhooks of operators that run as processes: the API server calls them on the loopback address.

Their certificate is of the control plane's own authority, or of another one that is given.
"""

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from tests.controlplane.client import ApiError, Object, RawClient

_REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1"


class Hook(NamedTuple):
    """One webhook of an operator."""

    path: str
    group: str
    version: str
    resource: str
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    #: Only objects with this label are sent; "": all.
    label: str = ""


class Registration(NamedTuple):
    """The webhook configurations of an operator, by the names that it expects, and their hooks."""

    mutating_name: str
    validating_name: str
    mutating: tuple[Hook, ...]
    validating: tuple[Hook, ...]


@asynccontextmanager
async def registered(
    registration: Registration, api: RawClient, port: int, authority_pem: bytes
) -> AsyncIterator[None]:
    """Register webhooks that are served on this port of 127.0.0.1, until the block is left.

    Args:
        registration: Which ones.
        api: A client with all rights.
        port: Where the operator serves them.
        authority_pem: The certificate of the authority that signed the operator's.
    """
    bundle = base64.b64encode(authority_pem).decode()
    bodies = [
        (
            "mutatingwebhookconfigurations",
            _body(
                "MutatingWebhookConfiguration",
                registration.mutating_name,
                registration.mutating,
                port,
                bundle,
            ),
        ),
        (
            "validatingwebhookconfigurations",
            _body(
                "ValidatingWebhookConfiguration",
                registration.validating_name,
                registration.validating,
                port,
                bundle,
            ),
        ),
    ]
    try:
        for plural, body in bodies:
            await api.create(f"{_REGISTRATION}/{plural}", body)
        yield
    finally:
        for plural, body in bodies:
            await _remove(api, f"{_REGISTRATION}/{plural}/{body['metadata']['name']}")


def _body(kind: str, name: str, hooks: Sequence[Hook], port: int, bundle: str) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [_webhook(name, hook, port, bundle) for hook in hooks],
    }


def _webhook(name: str, hook: Hook, port: int, bundle: str) -> Object:
    selector: Object = {}
    if hook.label:
        selector = {"matchExpressions": [{"key": hook.label, "operator": "Exists"}]}
    return {
        "name": f"{hook.resource}.{name}.test",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "objectSelector": selector,
        "clientConfig": {"url": f"https://127.0.0.1:{port}{hook.path}", "caBundle": bundle},
        "rules": [
            {
                "apiGroups": [hook.group],
                "apiVersions": [hook.version],
                "operations": list(hook.operations),
                "resources": [hook.resource],
            }
        ],
    }


async def _remove(api: RawClient, path: str) -> None:
    try:
        await api.delete(path)
    except ApiError as error:
        if error.status != 404:
            raise
