"""What `--install-crds` makes of the CRDs that it finds."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shared.kinds.catalogue import SCHEMA_REVISION
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.resources import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.manifests.crds import REVISION_ANNOTATION, default_names, manifests
from tutti.up.crds import Crd, install

QUEUES = "queues.scheduling.volcano.sh"
OLD_QUEUES = "queues.scheduling.incubator.k8s.io"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KubeClient]:
    async with EmbeddedCluster(Settings(nodes=0)) as cluster:
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        async with KubeClient(await load(str(path))) as opened:
            yield opened


def queues(**metadata: Any) -> dict[str, Any]:
    """The CRD of queues as another project, or another Tutti, made it."""
    (made,) = (each for each in manifests() if each["metadata"]["name"] == QUEUES)
    made["metadata"] = {"name": QUEUES, **metadata}
    made["spec"]["names"]["shortNames"] = ["another"]
    return made


OURS = {"app.kubernetes.io/managed-by": "tutti"}


@pytest.mark.parametrize(
    ("found", "take_over", "written", "said"),
    [
        pytest.param({"labels": OURS}, False, True, "", id="older-tutti"),
        pytest.param({}, False, False, "of another product", id="foreign"),
        pytest.param({}, True, True, "", id="foreign-taken-over"),
        pytest.param(
            {"labels": OURS, "annotations": {REVISION_ANNOTATION: "999"}},
            True,
            False,
            "of a newer Tutti",
            id="newer-tutti",
        ),
    ],
)
async def test_a_crd_that_is_there_is_brought_up_to_date_or_left(
    client: KubeClient, found: dict[str, Any], take_over: bool, written: bool, said: str
) -> None:
    await client.create(CRDS, queues(**found))
    lines: list[str] = []

    await install(client, lines.append, take_over=take_over)

    stored = json.loads((await client.request("GET", CRDS.path(name=QUEUES))).body)
    assert (stored["spec"]["names"]["shortNames"] != ["another"]) == written
    assert bool(lines) == bool(said)
    assert all(said in line and QUEUES in line for line in lines)
    assert await names(client) == default_names()


async def names(client: KubeClient) -> set[str]:
    return {item.metadata.name for item in (await client.list(CRDS, Crd)).items}


async def test_kube_batchs_kinds_are_made_on_request_only_and_kept_up_to_date(
    client: KubeClient,
) -> None:
    everything = {each["metadata"]["name"] for each in manifests()}
    assert await install(client, print, kube_batch=True) == len(everything)
    assert await names(client) == everything
    # An earlier Tutti made them unasked: they stay, and it is said what they are in the way of.
    stale = {"metadata": {"annotations": {REVISION_ANNOTATION: "1"}}}
    await client.patch(CRDS, OLD_QUEUES, stale)
    lines: list[str] = []
    assert await install(client, lines.append) == len(everything)
    found = (await client.get(CRDS, OLD_QUEUES, Crd)).metadata
    assert found.annotations[REVISION_ANNOTATION] == str(SCHEMA_REVISION)
    (line,) = lines
    assert "kubectl get queues" in line
    assert OLD_QUEUES in line
