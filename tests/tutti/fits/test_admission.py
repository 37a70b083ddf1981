"""What admission would refuse is refused by `tutti fits`, with and without an API server."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.dialects.manifests import flattened
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.fits.admission import Admitted, admit, local_errors
from tutti.manifests.crds import manifests

NAMES = ("tutti", "volcano")
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: default}
spec:
  schedulerName: tutti
  minAvailable: 3
  tasks:
    - name: worker
      replicas: 3
      template: {spec: {containers: [{name: c, image: i}]}}
"""


def parsed(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_a_job_that_admission_takes_has_no_errors() -> None:
    assert local_errors(parsed(JOB), NAMES) == []


@pytest.mark.parametrize(
    ("right", "wrong", "error"),
    [
        ("minAvailable: 3", "minAvailable: 4", "spec.minAvailable: 4 is greater than the replicas"),
        ("minAvailable:", "minAvailableX:", 'unknown field "spec.minAvailableX"'),
        ("replicas: 3", "replica: 3", 'unknown field "spec.tasks[0].replica"'),
        ("name: c,", "name: c, imagePullPolicyX: x,", "imagePullPolicyX"),
        ("schedulerName: tutti", "schedulerName: mine", "schedulerName mine is not served"),
    ],
)
def test_errors_on_every_cluster_are_reported_without_an_api_server(
    right: str, wrong: str, error: str
) -> None:
    assert error in "; ".join(local_errors(parsed(JOB.replace(right, wrong)), NAMES))


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KubeClient]:
    async with EmbeddedCluster(Settings(nodes=0, crds=tuple(manifests()))) as cluster:
        credentials = await load(str(cluster.kubeconfig(tmp_path / "config")))
        async with KubeClient(credentials) as client:
            yield client


async def tried(client: KubeClient | None, *objects: dict[str, Any]) -> Admitted:
    return await admit(client, list(flattened(objects)), namespace="default", scheduler_names=NAMES)


async def test_the_api_server_gives_defaults_and_nothing_is_stored(client: KubeClient) -> None:
    for _ in range(2):
        found = await tried(client, parsed(JOB))
        assert (found.errors, found.notes) == ((), ())
        ((_, made),) = found.documents
        assert made["metadata"]["uid"]


async def test_a_kind_that_the_cluster_does_not_serve_is_an_error(client: KubeClient) -> None:
    found = await tried(client, {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {}})
    assert found.errors == ("document 1, TFJob: the API server serves no TFJob of kubeflow.org/v1",)


async def test_without_an_api_server_a_note_names_what_was_not_checked() -> None:
    found = await tried(None, parsed(JOB))
    assert found.errors == ()
    assert "no API server is available" in found.notes[0]
