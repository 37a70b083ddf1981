"""Tests whether the API server reaches this webhook, and whether a registered replica is alive.

The first test registers a configuration for one label with a random value and sends a dry-run
creation of a ConfigMap with that label. The answer shows whether the API server called the webhook.
The configuration is removed in every case. The second test is a TLS handshake with the replica.
"""

import asyncio
import contextlib
import ipaddress
import logging
import secrets
import ssl
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from services.admission_webhook.core.configurations import (
    LABELS,
    NAME,
    PROBE,
    Address,
    Member,
    probe_configuration,
    probe_object,
)
from shared.kube.client import KubeClient
from shared.kube.errors import NotFound
from shared.kube.objects import KubeObject, KubeStruct
from shared.kube.resources import CONFIGMAPS, MUTATING_WEBHOOKS

log = logging.getLogger(__name__)

#: The API server reads a new configuration within about 0.1 s, on a loaded machine within a second.
PROBE_TIMEOUT_S: Final = 3.0
#: A probe is removed after seconds; an older one was left by a process that was killed.
LEFT_BEHIND_MS: Final = 60_000
_PAUSE_S_FIRST: Final = 0.02
_PAUSE_S_MAX: Final = 0.25
#: A process that is alive on this machine completes a handshake within milliseconds.
HANDSHAKE_TIMEOUT_S: Final = 1.0


class _Created(KubeStruct, frozen=True, kw_only=True):
    data: Mapping[str, str] = {}


async def is_reached(
    client: KubeClient,
    address: Address,
    cas: Sequence[str],
    *,
    probe: str,
    namespace: str,
    within_s: float = PROBE_TIMEOUT_S,
) -> bool:
    """Whether a review that the API server sends to `address` arrives at one of our replicas.

    `cas` are the CAs to register: ours, and those of replicas behind the same Service. `probe` is
    part of the probe's name and unique among replicas; `namespace` is that of the ConfigMap whose
    creation is tried. After `within_s` seconds the answer is no.

    Raises:
        KubeError: The API server refused the test or could not be reached.
    """
    name = f"{NAME}-probe-{probe}"
    nonce = secrets.token_hex(8)
    with contextlib.suppress(NotFound):  # left by a killed predecessor
        await client.delete(MUTATING_WEBHOOKS, name)
    try:
        configuration = probe_configuration(name, nonce, address, cas)
        await client.create(MUTATING_WEBHOOKS, configuration)
        return await _is_called(client, nonce, namespace, within_s)
    finally:
        with contextlib.suppress(NotFound):
            await client.delete(MUTATING_WEBHOOKS, name)


async def remove_left_behind(client: KubeClient, now_ms: int) -> None:
    """Remove probes of processes that were killed during the test. Raises KubeError."""
    labels = ",".join([*(f"{key}={value}" for key, value in LABELS.items()), PROBE])
    page = await client.list(MUTATING_WEBHOOKS, KubeObject, label_selector=labels)
    for probe in page.items:
        metadata = probe.metadata
        if now_ms - metadata.created_ms > LEFT_BEHIND_MS:
            log.info("removing the probe %s of a killed process", metadata.name)
            with contextlib.suppress(NotFound):
                await client.delete(MUTATING_WEBHOOKS, metadata.name, uid=metadata.uid)


async def _is_called(client: KubeClient, nonce: str, namespace: str, within_s: float) -> bool:
    manifest = probe_object(nonce)
    pause_s = _PAUSE_S_FIRST
    try:
        async with asyncio.timeout(within_s):
            while True:
                reply = await client.create(CONFIGMAPS, manifest, namespace=namespace, dry_run=True)
                if _arrived(reply.body, nonce):
                    return True
                # Nothing reports when the API server has read the configuration.
                await asyncio.sleep(pause_s)
                pause_s = min(_PAUSE_S_MAX, pause_s * 2)
    except TimeoutError:
        return False


def _arrived(body: bytes, nonce: str) -> bool:
    try:
        return msgspec.json.decode(body, type=_Created).data.get("reached") == nonce
    except msgspec.MsgspecError:
        return False


def is_loopback(url: str) -> bool:
    """Whether the URL names the loopback interface."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def is_alive(member: Member) -> bool:
    """Whether a server with a certificate of the member's CA listens at its URL.

    Another program that listens on the port by now has another certificate, or none.
    """
    url = urlsplit(member.address.url)
    host = url.hostname or ""
    try:
        trust = ssl.create_default_context(cadata=member.ca)
        async with asyncio.timeout(HANDSHAKE_TIMEOUT_S):
            _, writer = await asyncio.open_connection(
                host, url.port or 443, ssl=trust, server_hostname=host
            )
    except (OSError, ValueError, TimeoutError):  # ssl.SSLError is an OSError
        return False
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(HANDSHAKE_TIMEOUT_S):
            await writer.wait_closed()
    return True
