"""Against a real API server, as a user with the rights get and list in one namespace alone."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from shared.contracts.annotations import GROUP_NAME, VERDICT
from shared.contracts.verdicts import Verdict, Why
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import Forbidden
from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import pod_manifest
from tutti.api.failures import Refusal
from tutti.cli import main
from tutti.why.facts import Facts
from tutti.why.reader import NamespaceReader

pytestmark = [pytest.mark.integration, pytest.mark.slow]

READ = ["get", "list"]
TASKS = [
    {
        "name": "worker",
        "replicas": 2,
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
]
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": READ}


async def allow(api: RawClient, namespace: str, user: str, rules: list[Object]) -> None:
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    await api.create(f"{path}/roles", {"metadata": {"name": user}, "rules": rules})
    binding = {
        "metadata": {"name": user},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": user, "apiGroup": "rbac.authorization.k8s.io"},
    }
    await api.create(f"{path}/rolebindings", binding)


@pytest.fixture
async def user(control_plane: ControlPlane, api: RawClient, namespace: str) -> Path:
    await allow(api, namespace, f"{namespace}-reader", [EVERYTHING])
    return await asyncio.to_thread(control_plane.kubeconfig_for, f"{namespace}-reader")


@pytest.fixture
async def reader(user: Path, namespace: str) -> AsyncIterator[NamespaceReader]:
    async with KubeClient(await load(str(user))) as client:
        yield NamespaceReader(client, namespace, ["volcano"])


async def make_group(api: RawClient, namespace: str, name: str, **metadata: Any) -> Object:
    return await api.create(
        f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups",
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, **metadata},
            "spec": {"minMember": 2},
        },
    )


async def make_pod(
    api: RawClient, namespace: str, name: str, *, group: str = "", owner: Object | None = None
) -> Object:
    manifest = pod_manifest(
        name,
        scheduler_name="volcano",
        annotations={GROUP_NAME: group} if group else {},
        owner=owner,
    )
    return await api.create(f"/api/v1/namespaces/{namespace}/pods", manifest)


def owner_of(thing: Object) -> Object:
    return {
        "apiVersion": thing["apiVersion"],
        "kind": thing["kind"],
        "name": thing["metadata"]["name"],
        "uid": thing["metadata"]["uid"],
        "controller": True,
    }


def names(facts: Facts) -> tuple[list[str], list[str]]:
    pods = sorted(member.pod.name for member in facts.pods)
    return pods, sorted(group.name for group in facts.groups)


def workload(kind: str, name: str, owner: Object | None = None) -> Object:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "ownerReferences": [owner] if owner else []},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


async def test_a_pod_leads_to_its_gang_and_all_its_members(
    api: RawClient, namespace: str, reader: NamespaceReader
) -> None:
    await make_group(api, namespace, "train")
    await make_group(api, namespace, "other")
    for name in ("train-0", "train-1"):
        await make_pod(api, namespace, name, group="train")
    await make_pod(api, namespace, "other-0", group="other")
    assert names(await reader.read("pod", "train-0")) == (["train-0", "train-1"], ["train"])
    assert names(await reader.read("pg", "train")) == (["train-0", "train-1"], ["train"])


async def test_owners_are_followed_down_to_the_pods_however_many_steps_it_takes(
    api: RawClient, namespace: str, reader: NamespaceReader
) -> None:
    base = f"/apis/apps/v1/namespaces/{namespace}"
    deployment = await api.create(f"{base}/deployments", workload("Deployment", "web"))
    replicas = await api.create(
        f"{base}/replicasets", workload("ReplicaSet", "web-1", owner_of(deployment))
    )
    await make_pod(api, namespace, "web-1-a", owner=owner_of(replicas))
    await make_pod(api, namespace, "unrelated")
    assert names(await reader.read("deployment", "web")) == (["web-1-a"], [])
    assert names(await reader.read("rs", "web-1")) == (["web-1-a"], [])


async def test_a_group_that_an_object_owns_is_found_before_there_are_pods(
    api: RawClient, namespace: str, reader: NamespaceReader
) -> None:
    job = await api.create(
        f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs",
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "train"},
            "spec": {"minAvailable": 2, "schedulerName": "volcano", "tasks": TASKS},
        },
    )
    await make_group(api, namespace, "train-x", ownerReferences=[owner_of(job)])
    assert names(await reader.read("vcjob", "train")) == ([], ["train-x"])


async def test_what_keeps_pods_from_being_made_is_found_below_the_object(
    reader: NamespaceReader, api: RawClient, namespace: str
) -> None:
    """A Deployment's pods are made by its ReplicaSet, which is refused: a quota is used up."""
    apps = f"/apis/apps/v1/namespaces/{namespace}"
    deployment = await api.create(f"{apps}/deployments", workload("Deployment", "web"))
    owner = owner_of(deployment)
    below = await api.create(f"{apps}/replicasets", workload("ReplicaSet", "web-1", owner))

    async def tell(name: str, kind: str, message: str, at: str) -> None:
        event = {
            "metadata": {"name": name},
            "involvedObject": {
                "kind": "ReplicaSet",
                "namespace": namespace,
                "uid": below["metadata"]["uid"],
            },
            "type": kind,
            "reason": "FailedCreate",
            "message": message,
            "lastTimestamp": at,
        }
        await api.create(f"/api/v1/namespaces/{namespace}/events", event)

    await tell("a", "Warning", "exceeded quota", "2026-01-01T00:00:01Z")
    await tell("b", "Warning", "an older one", "2026-01-01T00:00:00Z")
    await tell("c", "Normal", "no trouble", "2026-01-01T00:00:02Z")
    facts = await reader.read("deployment", "web")
    assert facts.troubles == ("FailedCreate: exceeded quota", "FailedCreate: an older one")
    await make_pod(api, namespace, "p", owner=owner_of(below))
    assert (await reader.read("deployment", "web")).troubles == ()


@pytest.mark.parametrize(
    ("about", "reason"), [("PodGroup", "Unschedulable"), ("Job", "PodGroupPending")]
)
async def test_a_warning_that_the_group_waits_is_not_repeated(
    api: RawClient, namespace: str, reader: NamespaceReader, about: str, reason: str
) -> None:
    """The Job controller reports on a Volcano Job that its group waits."""
    jobs = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs"
    job = await api.create(
        jobs,
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "train"},
            "spec": {"minAvailable": 2, "schedulerName": "volcano", "tasks": TASKS},
        },
    )
    group = await make_group(api, namespace, "train", ownerReferences=[owner_of(job)])
    uids = {one["kind"]: one["metadata"]["uid"] for one in (job, group)}
    await api.create(
        f"/api/v1/namespaces/{namespace}/events",
        {
            "metadata": {"name": "a"},
            "involvedObject": {"kind": about, "namespace": namespace, "uid": uids[about]},
            "type": "Warning",
            "reason": reason,
            "message": "1/1 tasks in gang unschedulable",
            "lastTimestamp": "2026-01-01T00:00:01Z",
        },
    )
    assert (await reader.read("podgroup", "train")).troubles == ()
    assert (await reader.read("vcjob", "train")).troubles == ()


async def test_a_budget_that_declares_a_gang_is_its_group_and_any_other_budget_is_not(
    api: RawClient, namespace: str, reader: NamespaceReader
) -> None:
    replicas = await api.create(
        f"/apis/apps/v1/namespaces/{namespace}/replicasets", workload("ReplicaSet", "old")
    )
    await make_pod(api, namespace, "old-0", owner=owner_of(replicas))
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    for name, owners, least in (
        ("gang", [owner_of(replicas)], 2),
        ("share", [owner_of(replicas)], "50%"),
        ("nobody", [], 2),
    ):
        await api.create(
            path,
            {
                "metadata": {"name": name, "ownerReferences": owners},
                "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": "old"}}},
            },
        )
    assert names(await reader.read("pod", "old-0")) == (["old-0"], ["gang"])
    assert names(await reader.read("pdb", "gang")) == (["old-0"], ["gang"])


async def test_a_word_for_two_kinds_is_settled_by_what_is_there_or_asked_back(
    api: RawClient, namespace: str, reader: NamespaceReader
) -> None:
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }
    await api.create(
        f"/apis/batch/v1/namespaces/{namespace}/jobs",
        {"metadata": {"name": "twice"}, "spec": {"template": template}},
    )
    assert (await reader.read("job", "twice")).kind == "Job"
    await api.create(
        f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs",
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "twice"},
            "spec": {"schedulerName": "volcano", "tasks": TASKS},
        },
    )
    with pytest.raises(Refusal, match=r"jobs\.batch/twice or jobs\.batch\.volcano\.sh/twice"):
        await reader.read("job", "twice")


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("pod", "no nothing in namespace"),
        ("nokind", "the API server serves no kind 'nokind'"),
        ("node", "nodes are cluster-scoped"),
    ],
)
async def test_what_is_not_there_is_said(word: str, words: str, reader: NamespaceReader) -> None:
    with pytest.raises(Refusal, match=words):
        await reader.read(word, "nothing")


async def test_a_group_that_pods_name_and_that_does_not_exist_leads_to_its_pods(
    api: RawClient, namespace: str, reader: NamespaceReader
) -> None:
    for name in ("train-1", "train-0"):
        await make_pod(api, namespace, name, group="train")
    with pytest.raises(
        Refusal, match=r"no train in .*; 2 pods name it, see `tutti why pod/train-0`"
    ):
        await reader.read("podgroup", "train")


async def test_a_gang_that_its_pods_declare_is_asked_about_by_its_name(
    reader: NamespaceReader, api: RawClient, namespace: str
) -> None:
    """The API server gates nothing itself: the second pod is gated as Kueue's webhook gates it."""
    labels = {
        "kueue.x-k8s.io/pod-group-name": "train",
        "kueue.x-k8s.io/queue-name": "team",
    }
    counted = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    for name, gates in (("a", []), ("b", [{"name": "kueue.x-k8s.io/admission"}])):
        pod = pod_manifest(
            name,
            scheduler_name="volcano",
            labels=labels,
            annotations=counted,
            spec={"schedulingGates": gates},
        )
        await api.create(f"/api/v1/namespaces/{namespace}/pods", pod)
    await make_pod(api, namespace, "other")
    for word in ("gang", ""):
        facts = await reader.read(word, "train")
        assert names(facts) == (["a", "b"], [])
        assert [member.awaited_queue for member in facts.pods] == ["", "team"]
    for word in ("gang", ""):
        with pytest.raises(Refusal, match="absent"):
            await reader.read(word, "absent")


async def test_a_missing_right_to_one_kind_is_reported_and_the_rest_is_answered(
    control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    await make_group(api, namespace, "train")
    await make_pod(api, namespace, "train-0", group="train")
    name = f"{namespace}-narrow"
    await allow(api, namespace, name, [{"apiGroups": [""], "resources": ["pods"], "verbs": READ}])
    kubeconfig = await asyncio.to_thread(control_plane.kubeconfig_for, name)
    async with KubeClient(await load(str(kubeconfig))) as client:
        facts = await NamespaceReader(client, namespace, ["volcano"]).read("pod", "train-0")
        assert names(facts) == (["train-0"], [])
        assert "podgroups.scheduling.volcano.sh" in facts.forbidden
        with pytest.raises(Forbidden):
            await NamespaceReader(client, "kube-system", ["volcano"]).read("pod", "any")


async def test_the_command_prints_the_verdict_that_stands_on_the_group(
    api: RawClient, namespace: str, user: Path
) -> None:
    verdict = Verdict(
        gang_id="id",
        epoch=0,
        at_ms=0,
        dialect="volcano",
        namespace=namespace,
        name="train",
        phase="Inqueue",
        min_member=2,
        why=Why(reason="NotEnoughResources", sentence="1 of 2 members fit: 3 nodes have no GPU"),
    )
    text = msgspec.json.encode(verdict).decode()
    await make_group(api, namespace, "train", annotations={VERDICT: text})
    await make_pod(api, namespace, "train-0", group="train")
    arguments = ["why", "pod/train-0", "-n", namespace, "--kubeconfig", str(user)]
    printed = await asyncio.to_thread(CliRunner().invoke, main, arguments)
    assert printed.exit_code == 0, printed.output
    assert printed.stdout.startswith(
        "podgroup/train waits: 1 of 2 members fit: 3 nodes have no GPU"
    )
    as_json = await asyncio.to_thread(CliRunner().invoke, main, [*arguments, "-o", "json"])
    assert json.loads(as_json.stdout)["gangs"][0]["reason"] == "NotEnoughResources"
    missing = await asyncio.to_thread(CliRunner().invoke, main, ["why", "pod/no", *arguments[2:]])
    assert missing.exit_code == 2
    assert "tutti: no no in namespace" in missing.stderr


async def test_a_namespace_that_does_not_exist_is_named(control_plane: ControlPlane) -> None:
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:
        for word in ("job", "", "gang"):
            with pytest.raises(Refusal, match=r"^namespace nowhere does not exist$"):
                await NamespaceReader(client, "nowhere", ["volcano"]).read(word, "train")


async def test_a_volcano_job_of_a_scheduler_that_is_not_served_is_not_ours(
    api: RawClient, reader: NamespaceReader, namespace: str
) -> None:
    for name, scheduler in (("theirs", "my-scheduler"), ("ours", "volcano")):
        await api.create(
            f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs",
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "metadata": {"name": name},
                "spec": {"minAvailable": 2, "schedulerName": scheduler, "tasks": TASKS},
            },
        )
    assert (await reader.read("vcjob", "theirs")).foreign_scheduler == "my-scheduler"
    assert (await reader.read("vcjob", "ours")).foreign_scheduler == ""
