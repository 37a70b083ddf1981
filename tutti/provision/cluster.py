"""Keeps keys and certificates in Secrets `RELEASE-nats-NAME` of one namespace.

msgspec, which encodes the requests and decodes the answers, writes bytes as base64.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from shared.bus.permissions import User
from shared.kinds.metadata import Metadata
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, NotFound
from shared.kube.resources import SECRETS
from tutti.api.failures import Refusal
from tutti.provision.plan import BadSecret, Kept, names, plan

#: Attempts when another `provision` writes at the same time: more than there are Secrets.
_ATTEMPTS: Final = 20


class _Secret(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    data: dict[str, bytes] | None = None


class Busy(Refusal):
    """Other clients keep changing the Secrets."""


def addresses(release: str, namespace: str) -> tuple[str, ...]:
    """DNS names of the NATS servers of a release: of its Service, and of each server."""
    service = f"{release}-nats.{namespace}.svc"
    peers = f"*.{release}-nats-peers.{namespace}.svc"
    return (
        f"{release}-nats",
        f"{release}-nats.{namespace}",
        service,
        f"{service}.cluster.local",
        peers,
        f"{peers}.cluster.local",
    )


async def provision(
    client: KubeClient,
    users: Sequence[User],
    *,
    release: str,
    namespace: str,
    more_addresses: Sequence[str] = (),
    say: Callable[[str], None],
    now: datetime | None = None,
) -> None:
    """Create missing Secrets, and renew certificates that expire soon.

    Idempotent, and safe beside another `provision`: after a failure or a cancellation run it again.

    Raises:
        BadSecret: The content of a Secret is not valid; nothing is written.
        Busy: Other clients keep changing the Secrets.
        KubeError: The API server refuses, or does not answer.
    """
    at = now or datetime.now(UTC)
    wanted_addresses = (*addresses(release, namespace), *more_addresses)
    for _ in range(_ATTEMPTS):
        stored = {
            name: await _stored(client, f"{release}-nats-{name}", namespace)
            for name in names(users)
        }
        known = {name: one.data or {} for name, one in stored.items() if one is not None}
        try:
            wanted = plan(users, wanted_addresses, known, at)
        except BadSecret as error:
            raise BadSecret(f"Secret {namespace}/{release}-nats-{error}") from error
        try:
            for name in names(users):
                done = await _write(client, release, namespace, name, stored[name], wanted[name])
                if done:
                    say(done)
        except (Conflict, NotFound):
            continue  # another client has changed or removed one
        return
    raise Busy(f"other clients keep changing the Secrets {namespace}/{release}-nats-*")


async def _stored(client: KubeClient, name: str, namespace: str) -> _Secret | None:
    try:
        return await client.get(SECRETS, name, _Secret, namespace=namespace)
    except NotFound:
        return None


async def _write(
    client: KubeClient,
    release: str,
    namespace: str,
    name: str,
    stored: _Secret | None,
    wanted: Kept,
) -> str:
    """Write one Secret if it differs from the wanted one; return a text for the change, or ""."""
    title = f"{release}-nats-{name}"
    if stored is None:
        await client.create(SECRETS, _manifest(release, title, wanted), namespace=namespace)
        return f"created Secret {namespace}/{title}"
    data = stored.data or {}
    changed = sorted(key for key in {*data, *wanted} if data.get(key) != wanted.get(key))
    if not changed:
        return ""
    patch = {
        "metadata": {
            "uid": stored.metadata.uid,
            "resourceVersion": stored.metadata.resource_version,
        },
        # In a merge patch null removes.
        "data": {key: wanted.get(key) for key in changed},
    }
    await client.patch(SECRETS, title, patch, namespace=namespace)
    return f"renewed {', '.join(changed)} of Secret {namespace}/{title}"


def _manifest(release: str, title: str, data: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {
            "name": title,
            "labels": {
                "app.kubernetes.io/managed-by": "tutti-provision",
                "app.kubernetes.io/instance": release,
            },
        },
        "type": "Opaque",
        "data": data,
    }
