"""Fixtures: one control plane with controllers for the folder, one `tutti up` for each module.

A module that wants other flags than ``--no-webhook`` sets ``SUITE_FLAGS``. Every test that uses
`stage` is judged by the auditor at its end, and all its pods are gone before the next one.
"""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.nodes import create_namespace, delete_pods
from tests.integration.auditor import Auditor
from tests.integration.stage import Stage
from tests.integration.suite import RunningSuite, running_suite
from tests.support.background import in_background
from tests.support.waiting import eventually


@pytest.fixture(scope="package")
def control_plane() -> Iterator[ControlPlane]:
    """A control plane like the session's own, with controllers and the default scheduler."""
    options = ControlPlaneOptions(controllers=WORKLOAD_CONTROLLERS, scheduler=True)
    with ControlPlane(options) as running:
        running.install_crds(CRDS_DIR)
        yield running


@pytest.fixture(scope="module")
def suite(
    control_plane: ControlPlane,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningSuite]:
    """The module's `tutti up`, ready."""
    flags = getattr(request.module, "SUITE_FLAGS", ("--no-webhook",))
    folder = tmp_path_factory.mktemp("suite")
    with running_suite(control_plane.admin_kubeconfig, folder, *flags) as running:
        yield running


#: Every API that gangs are declared in by a PodGroup.
GROUPS = (
    "scheduling.volcano.sh/v1beta1",
    "scheduling.incubator.k8s.io/v1alpha1",
    "scheduling.sigs.dev/v1alpha2",
)


@pytest.fixture
async def namespace(api: RawClient) -> AsyncIterator[str]:
    """A namespace of the test's own; afterwards no pod of it is left, whatever recreates pods.

    Nor is a group: a gang whose nodes are removed has a reservation for them, on the next test's
    nodes.
    """
    name = f"test-{uuid.uuid4().hex[:10]}"
    await create_namespace(api, name)
    yield name
    # A Job that lives has a reservation for its pods: it must be gone before the next test begins.
    await api.delete(f"/apis/batch/v1/namespaces/{name}/jobs", {"propagationPolicy": "Background"})
    for groups in GROUPS:
        await api.delete(f"/apis/{groups}/namespaces/{name}/podgroups")
    await api.delete(f"/api/v1/namespaces/{name}")

    async def none_left() -> bool:
        await delete_pods(api, name)
        return not (await api.get("/api/v1/pods"))["items"]

    await eventually(none_left, because="the next test finds no pods")


@pytest.fixture
async def audit(api: RawClient) -> AsyncIterator[Auditor]:
    """An auditor that has been looking since before the test began."""
    auditor = Auditor(api)
    async with in_background(auditor.run(), name="auditor"):
        await auditor.watching()
        yield auditor


@pytest.fixture
async def stage(
    control_plane: ControlPlane,
    suite: RunningSuite,
    api: RawClient,
    namespace: str,
    empty_cluster: None,
    audit: Auditor,
    kubelet: FakeKubelet,
) -> AsyncIterator[Stage]:
    """An empty cluster with the suite on it; at the end the auditor judges."""
    yield Stage(api, namespace, suite, audit, control_plane, kubelet)
    await audit.verdict()
