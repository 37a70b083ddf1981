"""The binder as a process, with exactly the rights that it says it needs."""

from pathlib import Path

import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import create_nodes, create_pods, pod_manifest
from tests.services.binder.harness import a_desk
from tests.services.binder.test_on_kubernetes import decision_for, node_of
from tests.services.binder.test_releases import release_of
from tests.support.rbac import as_account
from tests.support.service_process import a_service
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration


async def test_it_binds_and_removes_with_its_own_rights_and_stops_when_asked(
    nats_server: NatsServer,
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
    empty_cluster: None,
    tmp_path: Path,
) -> None:
    await create_nodes(api, 1)
    pods = await create_pods(api, namespace, [pod_manifest(f"w-{n}") for n in range(4)])
    kubeconfig = await as_account(control_plane.admin_kubeconfig, "binder")
    async with (
        a_desk(nats_server.url) as desk,
        a_service(
            "binder",
            desk.bus,
            nats_server.url,
            tmp_path / "binder.log",
            f"--kubeconfig={kubeconfig}",
        ),
    ):
        seq = await desk.decide(decision_for(pods, preflight=True))
        outcome = await eventually(lambda: desk.outcome(seq))
        assert outcome is not None
        assert (outcome.bound, outcome.reason) == (4, "")
        again = await desk.decide(decision_for(pods))
        repeated = await eventually(lambda: desk.outcome(again))
        assert repeated is not None
        assert repeated.bound == 4, "already where they belong"
        assert [await node_of(api, pod) for pod in pods] == ["node-0"] * 4
        released = await desk.decide(release_of(pods))
        removed = await eventually(lambda: desk.outcome(released))
        assert removed is not None
        assert (removed.evicted, removed.notes) == (4, ())
