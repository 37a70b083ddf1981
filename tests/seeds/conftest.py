"""One control plane with the controllers of workloads, one `tutti up` with its webhook."""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.nodes import create_namespace, delete_nodes, remove_namespace
from tests.integration.suite import RunningSuite, running_suite
from tests.seeds.playing import Play
from tests.support.background import in_background


@pytest.fixture(scope="package")
def control_plane() -> Iterator[ControlPlane]:
    with ControlPlane(ControlPlaneOptions(controllers=WORKLOAD_CONTROLLERS)) as running:
        running.install_crds(CRDS_DIR)
        yield running


@pytest.fixture(scope="module")
def suite(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningSuite]:
    folder = tmp_path_factory.mktemp("seeds")
    with running_suite(control_plane.admin_kubeconfig, folder, "--webhook-port=0") as running:
        yield running


@pytest.fixture
async def play(control_plane: ControlPlane, suite: RunningSuite) -> AsyncIterator[Play]:
    """A namespace, kubelets, and no node but those that the test makes."""
    name = f"seed-{uuid.uuid4().hex[:8]}"
    async with RawClient(control_plane.admin_kubeconfig) as api:
        await create_namespace(api, name)
        kubelet = FakeKubelet(api)
        try:
            async with in_background(kubelet.run(), name="kubelet"):
                try:
                    yield Play(api, control_plane, kubelet, name)
                finally:
                    await remove_namespace(api, name)
        finally:
            # Also time for the kubelets' connections to close.
            await delete_nodes(api)
