"""An API service as a process on a real API server and a real NATS, with the chart's rights; the
test writes the verdicts, in place of a planner.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from shared.bus.connection import Bus
from shared.bus.publisher import Publisher
from shared.bus.setup import ensure_streams
from shared.contracts import codec, subjects
from shared.contracts.verdicts import Verdict, Why
from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane, KubectlError
from tests.support.free_ports import free_port
from tests.support.rbac import RBAC, as_account, grant
from tests.support.service_process import a_service
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer
from tutti.rights.table import API_USERS

GROUP_PATH = "/apis/visibility.tutti.dev/v1alpha1"
SERVICE = "tutti-api"
_START_S = 60.0
FIRST_SEEN_MS = 1_790_000_000_000


def verdict(namespace: str, name: str, **fields: object) -> Verdict:
    """A verdict of a waiting gang of three."""
    given: dict[str, object] = {
        "gang_id": f"{namespace}-{name}",
        "epoch": 2,
        "at_ms": FIRST_SEEN_MS,
        "dialect": "volcano",
        "namespace": namespace,
        "name": name,
        "uid": f"{namespace}-{name}",
        "queue": "default",
        "phase": "Inqueue",
        "min_member": 3,
        "members": 3,
        "pending": 3,
        "first_seen_ms": FIRST_SEEN_MS,
        **fields,
    }
    return Verdict(**given)  # type: ignore[arg-type]  # fields by name


def waiting(*ahead: str) -> Why:
    """Why it waits: these gangs ("namespace/name") are ahead of it."""
    return Why(
        reason="QueueOrder",
        sentence=f"{len(ahead)} gangs are ahead",
        ahead=ahead,
        ahead_count=len(ahead),
    )


class Scene:
    """The service, and its users."""

    def __init__(self, control_plane: ControlPlane, api: RawClient, bus: Bus, port: int) -> None:
        self.control_plane = control_plane
        self.api = api
        self.bus = bus
        self.port = port
        self._publisher = Publisher(bus)

    async def publish(self, *verdicts: Verdict) -> int:
        """Store verdicts; returns the last one's sequence."""
        seq = 0
        for one in verdicts:
            stored = await self._publisher.publish(subjects.verdict(one.gang_id), codec.encode(one))
            seq = (await stored).seq
        return seq

    async def kubectl(self, *arguments: str, user: Path | None = None) -> str:
        """What the real kubectl prints."""
        return await asyncio.to_thread(self.control_plane.kubectl, *arguments, kubeconfig=user)

    async def refusal(self, *arguments: str, user: Path | None = None) -> str:
        """What the real kubectl says when it fails."""
        try:
            out = await self.kubectl(*arguments, user=user)
        except KubectlError as error:
            return str(error)
        raise AssertionError(f"kubectl did not fail: {out}")

    async def sees(self, *names: str, user: Path | None = None) -> None:
        """Wait until a list of all namespaces has these gangs ("namespace/name")."""

        async def listed() -> bool:
            out = await self.kubectl("get", "gangs.visibility.tutti.dev", "-A", user=user)
            rows = [line.split() for line in out.splitlines()[1:]]
            return ["/".join(row[:2]) for row in rows] == list(names)

        await eventually(listed, timeout_s=20, because=f"{names} are listed")

    async def user(self, name: str, *namespaces: str) -> Path:
        """A kubeconfig of a user who may list pods in these namespaces."""
        for namespace in namespaces:
            root = f"/apis/{RBAC}/v1/namespaces/{namespace}"
            rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
            await self.api.create(f"{root}/roles", {"metadata": {"name": name}, "rules": rules})
            binding: Object = {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
                "subjects": [{"apiGroup": RBAC, "kind": "User", "name": name}],
            }
            await self.api.create(f"{root}/rolebindings", binding)
        return self.control_plane.kubeconfig_for(name)


@asynccontextmanager
async def a_scene(
    control_plane: ControlPlane,
    api: RawClient,
    server: NatsServer,
    folder: Path,
    more_flags: Sequence[str] = (),
) -> AsyncIterator[Scene]:
    """Watcher and API service, registered with the API server, for the length of the block.
    `more_flags` are those of the API service besides the usual ones.
    """
    everyone = {"apiGroup": RBAC, "kind": "Group", "name": "system:authenticated"}
    await grant(api, "tutti-api-users", API_USERS, subject=everyone)
    port = free_port()
    await _put_service(api)
    bus = await Bus.connect(server.url, name="test")
    try:
        await ensure_streams(bus)
        admin = control_plane.admin_kubeconfig
        watcher = await as_account(admin, "watcher")
        flags = await api_flags(control_plane, port, folder / "certificates")
        async with (
            a_service(
                "watcher", bus, server.url, folder / "watcher.log", f"--kubeconfig={watcher}"
            ),
            a_service("api", bus, server.url, folder / "api.log", *flags, *more_flags),
        ):
            scene = Scene(control_plane, api, bus, port)
            await eventually(lambda: _serves(api), timeout_s=20, because="the API is registered")
            yield scene
        assert not await _serves(api), "the registration is removed at the end"
    finally:
        await bus.close()


async def api_flags(control_plane: ControlPlane, port: int, folder: Path) -> tuple[str, ...]:
    """Flags of a replica that listens on a port, and is registered by that port."""
    account = await as_account(control_plane.admin_kubeconfig, "api")
    return (
        f"--kubeconfig={account}",
        f"--port={port}",
        f"--service-port={port}",
        f"--cert-dir={folder}",
        "--owner-cluster-role=tutti-api",
        "--jaeger-url=https://jaeger.example/",
    )


async def _serves(api: RawClient) -> bool:
    try:
        await api.get(f"{GROUP_PATH}/gangs")
    except ApiError as error:
        if error.status in {404, 503}:
            return False
        raise
    return True


async def _put_service(api: RawClient) -> None:
    """The Service that the APIService names, as it leads to this machine."""
    manifest: Object = {
        "metadata": {"name": SERVICE},
        "spec": {"type": "ExternalName", "externalName": "127.0.0.1"},
    }
    try:
        await api.create("/api/v1/namespaces/kube-system/services", manifest)
    except ApiError as error:
        if error.status != 409:
            raise
