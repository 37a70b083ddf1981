"""Operators that make the certificate of their webhooks themselves, and store it in a Secret.

They run as processes, not in pods. The certificate is therefore copied to where the Secret would be
mounted. The configurations of their webhooks, into which they write their authority, are empty: an
API server on this machine could not reach a Service.
"""

import asyncio
import base64
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.locks import exclusive
from tests.controlplane.operators.started import START_S, wait_at_work
from tests.controlplane.processes import Component
from tests.support.waiting import eventually

_REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1"
#: Where they insist on finding the certificate: compiled in.
_CERTIFICATES: Final = Path("/").joinpath("tmp", "k8s-webhook-server", "serving-certs")


class OwnCertificate(NamedTuple):
    """The objects that an operator's certificate needs."""

    namespace: str
    secret: str
    #: Webhook configurations: plural and name.
    configurations: tuple[tuple[str, str], ...]


async def make_objects(api: RawClient, own: OwnCertificate) -> None:
    """Make the namespace, the empty Secret and the empty configurations, where they are absent."""
    await _make(api, "/api/v1/namespaces", own.namespace)
    await _make(api, f"/api/v1/namespaces/{own.namespace}/secrets", own.secret)
    for plural, name in own.configurations:
        await _make(api, f"{_REGISTRATION}/{plural}", name)


@asynccontextmanager
async def running_with_own_certificate(
    component: Component, api: RawClient, own: OwnCertificate, *, works: str
) -> AsyncIterator[Component]:
    """Run an operator until the block is left; it yields once the log has the words `works`.

    One at a time on a machine: the place of the certificate is compiled in.
    """
    await make_objects(api, own)
    with exclusive(_CERTIFICATES.parents[1] / "tutti-training-operator.lock"):
        try:
            await asyncio.to_thread(component.start)
            await _lay_certificate(api, own)
            await wait_at_work(component, works)
            yield component
        finally:
            await asyncio.to_thread(component.stop)
            shutil.rmtree(_CERTIFICATES.parent, ignore_errors=True)


async def _lay_certificate(api: RawClient, own: OwnCertificate) -> None:
    """Put what the operator stored in its Secret where a pod would have it mounted."""

    async def stored() -> Object:
        secret = await api.get(f"/api/v1/namespaces/{own.namespace}/secrets/{own.secret}")
        return dict(secret.get("data") or {})

    data = await eventually(stored, timeout_s=START_S, because="the operator made a certificate")
    _CERTIFICATES.mkdir(parents=True, exist_ok=True)
    for name, value in data.items():
        (_CERTIFICATES / name).write_bytes(base64.b64decode(value))


async def _make(api: RawClient, path: str, name: str) -> None:
    try:
        await api.create(path, {"metadata": {"name": name}})
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
