"""Fixtures: one control plane and one `tutti up` for all cases, and each case's own cluster."""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.process_kubelet import ProcessKubelet
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.nodes import create_namespace, delete_nodes
from tests.integration.suite import running_suite
from tests.support.background import in_background
from tests.volcano_e2e.cluster import Cluster
from tests.volcano_e2e.shell import WORK_S, nature

#: What Volcano's own runs are configured with.
CONF: Final = """\
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
"""
WORKERS: Final = 4


@pytest.fixture(scope="package")
def control_plane() -> Iterator[ControlPlane]:
    """With the controllers that workloads need, and the default scheduler."""
    controllers = (*WORKLOAD_CONTROLLERS, "replicationcontroller-controller")
    options = ControlPlaneOptions(controllers=controllers, scheduler=True)
    with ControlPlane(options) as running:
        running.install_crds(CRDS_DIR)
        yield running


@pytest.fixture(scope="package")
def conf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The suite runs while this is used; the file of its scheduler configuration."""
    folder = tmp_path_factory.mktemp("volcano-e2e")
    file = folder / "volcano-scheduler.conf"
    file.write_text(CONF)
    flags = (f"--scheduler-conf={file}", "--webhook-port=0")
    with running_suite(control_plane.admin_kubeconfig, folder, *flags):
        yield file


@pytest.fixture
async def bare(control_plane: ControlPlane, conf: Path) -> AsyncIterator[Cluster]:
    """A namespace on a cluster without nodes; whatever nodes it gets have kubelets."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    async with RawClient(control_plane.admin_kubeconfig) as api:
        await delete_nodes(api)
        await create_namespace(api, name)
        kubelet = ProcessKubelet(api, nature=nature, pull_s=WORK_S)
        cluster = Cluster(api, control_plane, name, conf)
        try:
            async with in_background(kubelet.run(), name="kubelet"):
                try:
                    yield cluster
                finally:
                    await cluster.clean()
        finally:
            # Also time for the kubelets' connections to close.
            await delete_nodes(api)
            await cluster.configure(CONF)


@pytest.fixture
async def e2e(bare: Cluster) -> Cluster:
    """A cluster as Volcano's own runs have it: four workers of 4 CPUs each."""
    await bare.nodes(WORKERS)
    return bare
