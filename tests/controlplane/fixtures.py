"""Pytest fixtures around one real control plane per test session.

``control_plane`` has RBAC on and the CRDs of ``deploy/crds`` installed; no controllers, no
scheduler, no kubelets. What differs from that starts its own ``ControlPlane``. Namespaces are a
test's own; nodes are not, so a test that schedules asks for ``empty_cluster``.
"""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.autoscalers import karpenter
from tests.controlplane.binaries import Binaries, ensure_binaries, ensure_oracle
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import ControlPlaneOptions
from tests.controlplane.jaeger import ensure_jaeger
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.login_programs import ensure_dex, ensure_oauth2_proxy
from tests.controlplane.nodes import create_namespace, delete_nodes, remove_namespace
from tests.controlplane.operators import (
    kuberay,
    kueue,
    managers,
    mpi,
    scheduler_plugins,
    trainer,
    training,
)
from tests.controlplane.operators.building import BuiltOperator, ensure_operator
from tests.controlplane.programs import ensure_compose_loader, ensure_helm
from tests.support.background import in_background

CRDS_DIR = Path(__file__).parents[2] / "deploy" / "crds"
#: What is built for tests that use a fixture, by its name.
BUILDS: Final[dict[str, Callable[[], object]]] = {
    "control_plane": ensure_binaries,
    "binaries": ensure_binaries,
    "oracle": ensure_oracle,
    "training_operator": partial(ensure_operator, training.RECIPE),
    "mpi_operator": partial(ensure_operator, mpi.RECIPE),
    "kuberay_operator": partial(ensure_operator, kuberay.RECIPE),
    "trainer_operator": partial(ensure_operator, trainer.RECIPE),
    "jobset_operator": partial(ensure_operator, managers.JOBSET.recipe),
    "lws_operator": partial(ensure_operator, managers.LEADER_WORKER_SET.recipe),
    "kueue_operator": partial(ensure_operator, kueue.KUEUE.recipe),
    "scheduler_plugins_operator": partial(ensure_operator, scheduler_plugins.RECIPE),
    "karpenter_program": partial(ensure_operator, karpenter.RECIPE),
    "jaeger_program": ensure_jaeger,
    "dex_program": ensure_dex,
    "oauth2_proxy_program": ensure_oauth2_proxy,
    "helm": ensure_helm,
    "compose_loader": ensure_compose_loader,
}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the programs before the first test's timeout runs: cold, it takes minutes."""
    if session.config.option.collectonly:
        return
    used = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    for name, build in BUILDS.items():
        if name in used:
            build()


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The control plane's executables, built."""
    return ensure_binaries()


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """The session's real control plane."""
    # DeviceTaintRules are off by default.
    args = (
        "--feature-gates=DRADeviceTaintRules=true",
        "--runtime-config=resource.k8s.io/v1beta2=true",
    )
    with ControlPlane(ControlPlaneOptions(apiserver_args=args)) as running:
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
def kuberay_operator() -> BuiltOperator:
    """KubeRay's operator, built."""
    return ensure_operator(kuberay.RECIPE)


@pytest.fixture(scope="session")
def trainer_operator() -> BuiltOperator:
    """Kubeflow's Trainer v2, built."""
    return ensure_operator(trainer.RECIPE)


@pytest.fixture(scope="session")
def jobset_operator() -> BuiltOperator:
    """JobSet's controller, built."""
    return ensure_operator(managers.JOBSET.recipe)


@pytest.fixture(scope="session")
def lws_operator() -> BuiltOperator:
    """LeaderWorkerSet's controller, built."""
    return ensure_operator(managers.LEADER_WORKER_SET.recipe)


@pytest.fixture(scope="session")
def kueue_operator() -> BuiltOperator:
    """Kueue, built."""
    return ensure_operator(kueue.KUEUE.recipe)


@pytest.fixture(scope="session")
def scheduler_plugins_operator() -> BuiltOperator:
    """The scheduler plugins' controller, built."""
    return ensure_operator(scheduler_plugins.RECIPE)


@pytest.fixture(scope="session")
def karpenter_program() -> BuiltOperator:
    """Karpenter with its kwok provider, built."""
    return ensure_operator(karpenter.RECIPE)


@pytest.fixture(scope="session")
def jaeger_program() -> Path:
    """Jaeger, built."""
    return ensure_jaeger()


@pytest.fixture(scope="session")
def dex_program() -> Path:
    """Dex, an OIDC provider, built."""
    return ensure_dex()


@pytest.fixture(scope="session")
def oauth2_proxy_program() -> Path:
    """oauth2-proxy, built."""
    return ensure_oauth2_proxy()


@pytest.fixture(scope="session")
def helm() -> Path:
    """The Helm client, built."""
    return ensure_helm()


@pytest.fixture(scope="session")
def compose_loader() -> Path:
    """The Compose specification's own loader, built."""
    return ensure_compose_loader()


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
    async with in_background(fake.run(), name="fake-kubelet"):
        yield fake
