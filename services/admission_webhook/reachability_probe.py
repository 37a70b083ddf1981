"""Proves that the API server reaches us, before it is asked to: a review that it sends.

A configuration for one label with a random value is registered, the creation of a ConfigMap with
that label is tried (dry-run, so nothing is stored), and what comes back shows whether the API
server asked us about it. Then the configuration is removed, whatever happened.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from services.admission_webhook.core.configurations import (
    LABELS,
    NAME,
    PROBE,
    Address,
    probe_configuration,
    probe_object,
)
from shared.kube.client import KubeClient
from shared.kube.errors import NotFound
from shared.kube.objects import KubeStruct, ObjectMeta
from shared.kube.resources import CONFIGMAPS, MUTATING_WEBHOOKS

log = logging.getLogger(__name__)

#: The API server notices a new configuration within about 0.1 s, on a loaded machine in a second.
PROOF_S: Final = 3.0
#: A probe is removed after seconds; one this old was left by a killed process.
LEFT_BEHIND_MS: Final = 60_000
_PAUSE_S_FIRST: Final = 0.02
_PAUSE_S_MAX: Final = 0.25


class _Stored(KubeStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


class _Tried(KubeStruct, frozen=True, kw_only=True):
    data: Mapping[str, str] = {}


async def is_reached(
    client: KubeClient,
    address: Address,
    cas: Sequence[str],
    *,
    probe: str,
    namespace: str,
    within_s: float = PROOF_S,
) -> bool:
    """Whether a review that the API server sends to `address` arrives at one of us.

    Args:
        client: Of the API server.
        address: The address that it would get.
        cas: The CAs that it would get: ours, and those of replicas behind the same Service.
        probe: Distinguishes this replica's probes from others'.
        namespace: Where the creation is tried.
        within_s: After this the answer is no.

    Raises:
        KubeError: It cannot be tried.
    """
    name = f"{NAME}-probe-{probe}"
    nonce = secrets.token_hex(8)
    with contextlib.suppress(NotFound):  # left by a predecessor that was killed
        await client.delete(MUTATING_WEBHOOKS, name)
    try:
        configuration = probe_configuration(name, nonce, address, cas)
        await client.create(MUTATING_WEBHOOKS, configuration)
        return await _tried(client, nonce, namespace, within_s)
    finally:
        with contextlib.suppress(NotFound):
            await client.delete(MUTATING_WEBHOOKS, name)


async def remove_left_behind(client: KubeClient, now_ms: int) -> None:
    """Remove probes that processes left which were killed in the middle. Raises KubeError."""
    labels = ",".join([*(f"{key}={value}" for key, value in LABELS.items()), PROBE])
    page = await client.list(MUTATING_WEBHOOKS, _Stored, label_selector=labels)
    for found in page.items:
        metadata = found.metadata
        if now_ms - metadata.created_ms > LEFT_BEHIND_MS:
            log.info("removing the probe %s, left behind", metadata.name)
            with contextlib.suppress(NotFound):
                await client.delete(MUTATING_WEBHOOKS, metadata.name, uid=metadata.uid)


async def _tried(client: KubeClient, nonce: str, namespace: str, within_s: float) -> bool:
    manifest = probe_object(nonce)
    pause_s = _PAUSE_S_FIRST
    try:
        async with asyncio.timeout(within_s):
            while True:
                reply = await client.create(CONFIGMAPS, manifest, namespace=namespace, dry_run=True)
                if _arrived(reply.body, nonce):
                    return True
                # No event reports when the API server has read a configuration.
                await asyncio.sleep(pause_s)
                pause_s = min(_PAUSE_S_MAX, pause_s * 2)
    except TimeoutError:
        return False


def _arrived(body: bytes, nonce: str) -> bool:
    try:
        return msgspec.json.decode(body, type=_Tried).data.get("reached") == nonce
    except msgspec.MsgspecError:
        return False
