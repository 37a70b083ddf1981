"""The chart refuses to take NATS from one server to three or back, and says what to do instead."""

from pathlib import Path
from subprocess import CalledProcessError

import pytest

from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.deploy.rendered import RELEASE, rendered

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture
async def running(api: RawClient, namespace: str) -> str:
    """The namespace of a release whose StatefulSet of NATS is there."""
    labels = {"app": "nats"}
    container = {"name": "nats", "image": "nats"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    servers: Object = {
        "metadata": {"name": f"{RELEASE}-nats"},
        "spec": {
            "replicas": 1,
            "serviceName": "nats",
            "selector": {"matchLabels": labels},
            "template": pod,
        },
    }
    await api.create(f"/apis/apps/v1/namespaces/{namespace}/statefulsets", servers)
    return namespace


@pytest.mark.parametrize(("there", "asked"), [(1, 3), (3, 1)])
async def test_servers_do_not_become_a_cluster_or_back_in_place(
    helm: Path, control_plane: ControlPlane, running: str, there: int, asked: int
) -> None:
    _scale(control_plane, running, there)
    with pytest.raises(CalledProcessError) as refused:
        _render(helm, control_plane, running, asked)
    message = refused.value.stderr
    assert f"runs with {there} server(s), and nats.replicas asks for {asked}" in message
    assert f"kubectl -n {running} delete statefulset {RELEASE}-nats" in message
    assert f"kubectl -n {running} delete persistentvolumeclaim -l" in message


@pytest.mark.parametrize(("there", "asked"), [(1, 1), (3, 3)])
async def test_the_number_of_servers_that_runs_is_rendered(
    helm: Path, control_plane: ControlPlane, running: str, there: int, asked: int
) -> None:
    _scale(control_plane, running, there)
    assert f"replicas: {asked}" in _render(helm, control_plane, running, asked)


def _scale(control_plane: ControlPlane, namespace: str, replicas: int) -> None:
    scale = ("scale", "statefulset", f"{RELEASE}-nats", f"--replicas={replicas}")
    control_plane.kubectl(*scale, f"--namespace={namespace}")


def _render(helm: Path, control_plane: ControlPlane, namespace: str, servers: int) -> str:
    """Render the chart as an upgrade does: with what the cluster has."""
    cluster = (f"--kubeconfig={control_plane.admin_kubeconfig}", "--dry-run=server")
    return rendered(helm, *cluster, f"--set=nats.replicas={servers}", namespace=namespace)
