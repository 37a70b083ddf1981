"""Pytest fixtures around one real control plane per test session.

``control_plane`` has RBAC on and the CRDs of ``deploy/crds`` installed; no controllers, no
scheduler, no kubelets. What differs from that starts its own ``ControlPlane``. Namespaces are a
test's own; nodes are not, so a test that schedules asks for ``empty_cluster``.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.controlplane.binaries import ensure_binaries, ensure_oracle
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.jaeger import ensure_jaeger
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.nodes import create_namespace, delete_nodes, remove_namespace
from tests.controlplane.operators import managers, mpi, training
from tests.controlplane.operators.building import BuiltOperator, Recipe, ensure_operator

CRDS_DIR = Path(__file__).parents[2] / "deploy" / "crds"
#: The fixtures that are built operators.
OPERATORS: dict[str, Recipe] = {
    "training_operator": training.RECIPE,
    "mpi_operator": mpi.RECIPE,
    "jobset_operator": managers.JOBSET.recipe,
    "lws_operator": managers.LEADER_WORKER_SET.recipe,
}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the binaries before the first test's timeout runs: cold, it takes minutes."""
    if session.config.option.collectonly:
        return
    if any("control_plane" in getattr(item, "fixturenames", ()) for item in session.items):
        ensure_binaries()
    if any("oracle" in getattr(item, "fixturenames", ()) for item in session.items):
        ensure_oracle()
    for name, recipe in OPERATORS.items():
        if any(name in getattr(item, "fixturenames", ()) for item in session.items):
            ensure_operator(recipe)
    if any("jaeger_program" in getattr(item, "fixturenames", ()) for item in session.items):
        ensure_jaeger()


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """The session's real control plane."""
    with ControlPlane() as running:
        running.install_crds(CRDS_DIR)
        yield running


@pytest.fixture(scope="session")
def training_operator() -> BuiltOperator:
    """Kubeflow's training-operator, built."""
    return ensure_operator(training.RECIPE)


@pytest.fixture(scope="session")
def mpi_operator() -> BuiltOperator:
    """Kubeflow's MPI operator, built."""
    return ensure_operator(mpi.RECIPE)


@pytest.fixture(scope="session")
def jobset_operator() -> BuiltOperator:
    """JobSet's controller, built."""
    return ensure_operator(managers.JOBSET.recipe)


@pytest.fixture(scope="session")
def lws_operator() -> BuiltOperator:
    """LeaderWorkerSet's controller, built."""
    return ensure_operator(managers.LEADER_WORKER_SET.recipe)


@pytest.fixture(scope="session")
def jaeger_program() -> Path:
    """Jaeger, built."""
    return ensure_jaeger()


@pytest.fixture
async def api(control_plane: ControlPlane) -> AsyncIterator[RawClient]:
    """A client of the real API server that may do everything."""
    async with RawClient(control_plane.admin_kubeconfig) as client:
        yield client


@pytest.fixture
async def namespace(api: RawClient) -> AsyncIterator[str]:
    """A namespace of the test's own, removed with its pods."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    await create_namespace(api, name)
    yield name
    await remove_namespace(api, name)


@pytest.fixture
async def empty_cluster(api: RawClient) -> AsyncIterator[None]:
    """No node but those the test makes, before it and after it."""
    await delete_nodes(api)
    yield
    await delete_nodes(api)


@pytest.fixture
async def kubelet(api: RawClient) -> AsyncIterator[FakeKubelet]:
    """Fake kubelets for all nodes."""
    fake = FakeKubelet(api)
    task = asyncio.create_task(fake.run(), name="fake-kubelet")
    yield fake
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
