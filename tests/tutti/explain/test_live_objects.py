"""Objects of a cluster, an embedded one, are understood with the groups that their pods name."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.resources import (
    COMPOSITE_PODGROUPS,
    JOBS_BATCH,
    NAMESPACES,
    PODGROUPS_KUBERNETES,
    PODGROUPS_VOLCANO,
    PODS,
    Resource,
)
from tests.support.open_crd import open_crd
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.explain_command import explain_dialect
from tutti.manifests.crds import manifests

GROUP = {"metadata": {"name": "pair"}, "spec": {"minMember": 2, "queue": "research"}}
CONTAINERS: list[dict[str, str]] = [{"name": "main", "image": "i"}]
POD_SPEC: dict[str, Any] = {"schedulerName": "tutti", "containers": CONTAINERS}
POD: dict[str, Any] = {
    "metadata": {"name": "pair-0", "annotations": {"scheduling.k8s.io/group-name": "pair"}},
    "spec": POD_SPEC,
}
JOB = {
    "metadata": {"name": "pair", "annotations": {"tutti.dev/gang": "all"}},
    "spec": {"parallelism": 3, "template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}},
}


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    async with EmbeddedCluster(Settings(nodes=0, crds=tuple(manifests()))) as cluster:
        path = cluster.kubeconfig(tmp_path / "config")
        async with KubeClient(await load(str(path))) as client:

            async def create(resource: Resource, one: dict[str, Any]) -> None:
                kind = {"apiVersion": resource.api_version, "kind": resource.kind}
                namespace = "default" if resource.namespaced else ""
                await client.create(resource, {**kind, **one}, namespace=namespace)

            for resource, one in ((PODGROUPS_VOLCANO, GROUP), (PODS, POD), (JOBS_BATCH, JOB)):
                await create(resource, one)
            labels = {"tutti.dev/schedule": "true"}
            await client.patch(NAMESPACES, "default", {"metadata": {"labels": labels}})
            taken = {**POD_SPEC, "schedulerName": "default-scheduler"}
            given = {"metadata": {**POD["metadata"], "name": "pair-1"}, "spec": taken}
            await create(PODS, given)
        yield path


async def ran(kubeconfig: Path, *words: str) -> Result:
    arguments = [*words, f"--kubeconfig={kubeconfig}", "-n", "default"]
    return await asyncio.to_thread(CliRunner().invoke, explain_dialect, arguments)


async def report(kubeconfig: Path, *words: str) -> dict[str, Any]:
    done = await ran(kubeconfig, *words, "-o", "json")
    assert done.exit_code in (0, 1), done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def test_a_pod_is_understood_with_the_group_that_it_names(kubeconfig: Path) -> None:
    found = await report(kubeconfig, "pod/pair-0")
    assert [one["place"] for one in found["objects"]] == ["pod/pair-0", "podgroup/pair"]
    (gang,) = found["gangs"]
    assert (gang["minimum"], gang["queue"]) == (2, "research")
    assert gang["declaredBy"] == "a group object of the dialect volcano"


async def test_a_namespace_that_has_opted_in_is_read(kubeconfig: Path) -> None:
    (first, *_) = (await report(kubeconfig, "pod/pair-1"))["objects"]
    (scheduling,) = first["scheduling"]
    assert scheduling["taken"]
    assert "the namespace has opted in" in scheduling["sentence"]


async def test_several_objects_are_understood_together(kubeconfig: Path) -> None:
    group = f"{PODGROUPS_VOLCANO.title}/pair"
    found = await report(kubeconfig, "pod/pair-0", "pod/pair-1", group)
    assert len(found["objects"]) == 3
    assert [one["members"] for one in found["gangs"]] == [2]


async def test_a_job_is_understood_as_its_manifest(kubeconfig: Path) -> None:
    found = await report(kubeconfig, "job.batch/pair")
    (gang,) = found["gangs"]
    assert (gang["minimum"], gang["members"]) == (3, 3)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("pod/none", "no none in namespace default"),
        ("unknown/pair", "serves no kind 'unknown'"),
        ("pod", "no pod in namespace default"),
    ],
)
async def test_what_does_not_exist_is_named(kubeconfig: Path, word: str, sentence: str) -> None:
    done = await ran(kubeconfig, word)
    assert done.exit_code == 2
    assert sentence in done.output


async def test_files_and_objects_are_not_mixed(kubeconfig: Path) -> None:
    for words in ((), ("pod/pair-0", "-f", str(kubeconfig))):
        assert (await ran(kubeconfig, *words)).exit_code == 2


async def test_a_group_is_understood_with_the_others_of_its_tree(tmp_path: Path) -> None:
    groups = PODGROUPS_KUBERNETES.at("v1beta1")
    crds = tuple(open_crd(one) for one in (COMPOSITE_PODGROUPS, groups))
    async with EmbeddedCluster(Settings(nodes=0, crds=crds)) as cluster:
        path = cluster.kubeconfig(tmp_path / "config")
        async with KubeClient(await load(str(path))) as client:
            for resource, name, parent in (
                (groups, "leader", "all"),
                (groups, "workers", "inner"),
                (COMPOSITE_PODGROUPS, "inner", "all"),
                (COMPOSITE_PODGROUPS, "all", ""),
                (groups, "other", "elsewhere"),
            ):
                one = {
                    "apiVersion": resource.api_version,
                    "kind": resource.kind,
                    "metadata": {"name": name},
                    "spec": {
                        "workloadRef": {"workloadName": "w", "templateName": "t"},
                        "parentCompositePodGroupName": parent,
                        "schedulingPolicy": {"basic": {}},
                    },
                }
                await client.create(resource, one, namespace="default")
        found = await report(path, f"{groups.title}/workers")
    (gang,) = found["gangs"]
    assert gang["title"] == "default/all"
    assert [one["name"] for one in gang["parts"]] == ["all", "inner", "workers", "leader"]
    assert {title for one in found["objects"] for title in one["gangs"]} == {"default/all"}


async def test_a_group_of_a_cluster_lacks_no_pods_that_were_not_read(kubeconfig: Path) -> None:
    (gang,) = (await report(kubeconfig, "podgroup/pair"))["gangs"]
    assert (gang["minimum"], gang.get("missing", [])) == (2, [])
