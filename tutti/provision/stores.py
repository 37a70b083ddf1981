"""Keeps keys and certificates in Secrets `RELEASE-nats-NAME` of one namespace, or in files,
`FOLDER/NAME/KEY`, as Secrets are mounted.

msgspec, which encodes the requests and decodes the answers, writes bytes as base64.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from shared.bus.permissions import User
from shared.kinds.metadata import Metadata
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, NotFound
from shared.kube.resources import SECRETS
from shared.runtime.whole_files import write_whole
from tutti.api.failures import Refusal
from tutti.api.fetches import find
from tutti.api.objects import new_object
from tutti.provision import names
from tutti.provision.plan import BadSecret, Kept, plan

#: Attempts when another `provision` writes at the same time: more than there are Secrets.
_ATTEMPTS: Final = 20


class _Secret(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    data: dict[str, bytes] | None = None


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


async def provision_secrets(
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
        Refusal: Other clients keep changing the Secrets.
        KubeError: The API server refuses, or does not answer.
    """
    at = now or datetime.now(UTC)
    wanted_addresses = (*addresses(release, namespace), *more_addresses)
    for _ in range(_ATTEMPTS):
        stored = {
            name: await find(
                client, SECRETS, f"{release}-nats-{name}", _Secret, namespace=namespace
            )
            for name in names(users)
        }
        known = {name: secret.data or {} for name, secret in stored.items() if secret is not None}
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
    raise Refusal(f"other clients keep changing the Secrets {namespace}/{release}-nats-*")


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
    labels = {
        "app.kubernetes.io/managed-by": "tutti-provision",
        "app.kubernetes.io/instance": release,
    }
    return new_object(SECRETS, {"name": title, "labels": labels}, type="Opaque", data=data)


def provision_folder(
    folder: Path, users: Sequence[User], addresses: Sequence[str], now: datetime | None = None
) -> tuple[str, ...]:
    """Create missing files, renew certificates that expire soon, and return the written paths.

    Blocks. Only the owner can read the files. Idempotent: after a failure run it again.

    Raises:
        BadSecret: The content of a file is not valid; nothing is written.
        OSError: The folder cannot be read or written.
    """
    wanted_names = names(users)
    stored = {name: _read_files(folder / name) for name in wanted_names if (folder / name).is_dir()}
    try:
        wanted = plan(users, tuple(addresses), stored, now or datetime.now(UTC))
    except BadSecret as error:
        raise BadSecret(f"{folder}: {error}") from error
    written: list[str] = []
    for name in wanted_names:
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        known = stored.get(name, {})
        for key, value in wanted[name].items():
            if known.get(key) != value:
                write_whole(folder / name / key, value)
                written.append(f"{name}/{key}")
        for key in sorted(known.keys() - wanted[name].keys()):
            (folder / name / key).unlink()
    return tuple(written)


def _read_files(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    return {path.name: path.read_bytes() for path in files}
