"""A unique secret is in every text of one tenant's objects; the other tenant searches everything
that it can read for it, while its own gangs wait for, and evict, pods of the first one.

Names of queues, nodes and PriorityClasses are allowed: their objects belong to no namespace, and
users read them to submit anything. The audience of traces, metrics and logs is the operator; of the
spans, `tests/services/binder/test_reporting.py` and
`tests/services/gang_planner/core/preemption/test_tracking.py` search those of the preemptor.
"""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from shared.contracts import annotations
from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.nodes import create_pods, pod_manifest, remove_namespace
from tests.integration.stage import VOLCANO, Stage
from tests.support.waiting import eventually
from tests.tutti.up.running import tutti

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

SUITE_FLAGS: Final = (
    f"--scheduler-conf={Path(__file__).parent.parent / 'integration' / 'preempting.yaml'}",
    "--api",
)
SECRET: Final = "zq7secret"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
QUEUES: Final = f"/apis/{VOLCANO}/queues"
API: Final = "/apis/visibility.tutti.dev/v1alpha1"
#: What a user reads of the cluster, besides its own namespace.
CLUSTER_RESOURCES: Final = ("queues", "nodes", "podshapes", "instances", "gangs", "decisions")
PORT: Final = 7_777
WAITS_S: Final = 60.0
MARKED: Final = {f"{SECRET}.example/key": SECRET}


class Victim:
    """The first tenant: its namespace, and objects with the secret in every text."""

    def __init__(self, api: RawClient, stage: Stage) -> None:
        self.api = api
        self.namespace = f"{SECRET}-{stage.namespace}"
        self.core = f"/api/v1/namespaces/{self.namespace}"
        self.groups = f"/apis/{VOLCANO}/namespaces/{self.namespace}/podgroups"

    async def begin(self) -> None:
        metadata = {"name": self.namespace, "labels": MARKED, "annotations": MARKED}
        await self.api.create("/api/v1/namespaces", {"metadata": metadata})
        await self.api.create(
            f"{self.core}/persistentvolumeclaims",
            {
                "metadata": {"name": f"{SECRET}-claim", "labels": MARKED, "annotations": MARKED},
                "spec": {
                    "accessModes": ["ReadWriteOncePod"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "storageClassName": f"{SECRET}-class",
                },
            },
        )

    async def gang(
        self, name: str, count: int, *, queue: str = "default", least: int = 1, **pods: Any
    ) -> None:
        """A gang with the secret in the names, labels, annotations, roles, owners, containers and
        volumes of all its pods.
        """
        metadata = {"name": f"{SECRET}-{name}", "labels": MARKED, "annotations": MARKED}
        spec = {"minMember": least, "priorityClassName": "low", "queue": queue}
        await self.api.create(
            self.groups, {**_kind("PodGroup"), "metadata": metadata, "spec": spec}
        )
        owner = {
            "apiVersion": f"{SECRET}.example/v1",
            "kind": "Secretset",
            "name": f"{SECRET}-owner",
            "uid": f"{SECRET}-owner-uid",
            "controller": True,
        }
        requests = pods.pop("requests", {"cpu": "4"})
        manifests = [
            pod_manifest(
                f"{SECRET}-{name}-{index}",
                requests=requests,
                labels={"app": SECRET, **MARKED},
                annotations={
                    annotations.GROUP_NAME: f"{SECRET}-{name}",
                    annotations.TASK_SPEC: f"{SECRET}-role",
                    **MARKED,
                },
                owner=owner,
                spec={
                    "priorityClassName": "low",
                    "terminationGracePeriodSeconds": 1,
                    "hostname": f"{SECRET}-host",
                    "subdomain": f"{SECRET}-domain",
                    "volumes": [{"name": f"{SECRET}-volume", "emptyDir": {}}],
                    **pods,
                },
            )
            for index in range(count)
        ]
        await create_pods(self.api, self.namespace, manifests)

    async def pod_of_no_queue(self) -> None:
        """A pod without a group, in a queue that does not exist."""
        queue = {annotations.QUEUE_NAME: f"{SECRET}-queue"}
        name = f"{SECRET}-nowhere"
        await create_pods(self.api, self.namespace, [pod_manifest(name, annotations=queue)])

    async def bound(self, name: str, count: int) -> None:
        async def all_bound() -> bool:
            listed = await self.api.get(f"{self.core}/pods")
            placed = [
                one
                for one in listed["items"]
                if one["metadata"]["name"].startswith(f"{SECRET}-{name}-")
                and one["spec"].get("nodeName")
            ]
            assert len(placed) == count, f"{len(placed)} of {name}"
            return True

        await eventually(all_bound, timeout_s=WAITS_S, because=f"{name} is bound")


def _kind(kind: str, version: str = VOLCANO) -> Object:
    return {"apiVersion": version, "kind": kind}


@pytest.fixture
async def victim(api: RawClient, stage: Stage) -> AsyncIterator[Victim]:
    """The first tenant's gangs run on four nodes, and others of it wait."""
    for name, value in (("low", 10), ("high", 1000)):
        await api.create(CLASSES, {"metadata": {"name": name}, "value": value})
    for name, spec in (("line", {"dequeueStrategy": "fifo"}), ("small", {"weight": 1})):
        capability = {"capability": {"cpu": "4"}} if name == "small" else {}
        manifest = {**_kind("Queue"), "metadata": {"name": name}, "spec": {**spec, **capability}}
        await api.create(QUEUES, manifest)
    found = Victim(api, stage)
    await found.begin()
    try:
        await stage.nodes(4)
        await found.gang("elastic", 3)
        await found.gang("holder", 1, queue="small", containers=_containers(hostPort=PORT))
        await found.bound("elastic", 3)
        await found.bound("holder", 1)
        await found.gang("first", 8, queue="line", least=8)
        await found.pod_of_no_queue()
        await found.gang("odd", 1, requests={"cpu": "1", f"{SECRET}.example/gpu": "1"})
        await found.gang("picky", 1, nodeSelector=MARKED)
        yield found
    finally:
        await remove_namespace(api, found.namespace)
        for path in (f"{CLASSES}/low", f"{CLASSES}/high", f"{QUEUES}/line", f"{QUEUES}/small"):
            await stage.delete(path)


def _containers(**port: int) -> list[Object]:
    return [
        {
            "name": f"{SECRET}-container",
            "image": f"{SECRET}.example/image",
            "env": [{"name": SECRET.upper(), "value": SECRET}],
            "resources": {"requests": {"cpu": "4"}},
            "ports": [{"containerPort": PORT, "name": SECRET, **port}],
        }
    ]


@pytest.fixture
async def tenant(api: RawClient, stage: Stage) -> AsyncIterator[RawClient]:
    """The other tenant: it may read everything in its namespace, and queues and nodes."""
    user = f"tenant-{stage.namespace}"
    every = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "create"]}
    cluster = {
        "apiGroups": ["", "scheduling.volcano.sh", "visibility.tutti.dev"],
        "resources": ["nodes", *CLUSTER_RESOURCES],
        "verbs": ["get", "list"],
    }
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    for folder, kind, rule in (
        (f"{RBAC}/namespaces/{stage.namespace}", "Role", every),
        (RBAC, "ClusterRole", cluster),
    ):
        plural = kind.lower()
        await api.create(f"{folder}/{plural}s", {"metadata": {"name": user}, "rules": [rule]})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": user}
        binding = {"metadata": {"name": user}, "roleRef": reference, "subjects": [subject]}
        await api.create(f"{folder}/{plural}bindings", binding)
    async with RawClient(stage.control_plane.kubeconfig_for(user)) as client:
        yield client


async def refuse_by_budget(victim: Victim) -> None:
    """A budget, whose name is in the API server's answer to an eviction."""
    path = f"/apis/policy/v1/namespaces/{victim.namespace}/poddisruptionbudgets"
    spec = {"minAvailable": "100%", "selector": {"matchLabels": {"app": SECRET}}}
    await victim.api.create(path, {"metadata": {"name": f"{SECRET}-budget"}, "spec": spec})


async def refuse_by_policy(victim: Victim) -> None:
    """A policy, whose message has labels of the pod's namespace."""
    name = f"{SECRET}-policy"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods/eviction"],
                }
            ]
        },
        "validations": [
            {
                "expression": "false",
                "messageExpression": f"'{SECRET}: ' + namespaceObject.metadata.name",
            }
        ],
    }
    folder = f"{ADMISSION}/validatingadmissionpolicies"
    await victim.api.create(folder, {"metadata": {"name": name}, "spec": spec})
    await victim.api.create(
        f"{ADMISSION}/validatingadmissionpolicybindings",
        {
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    )

    async def refuses() -> bool:
        """The API server compiles a policy a moment after it was created."""
        pod = f"{SECRET}-elastic-0"
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod},
            "deleteOptions": {"dryRun": ["All"]},
        }
        try:
            await victim.api.create(f"{victim.core}/pods/{pod}/eviction", eviction)
        except ApiError as error:
            return SECRET in str(error)
        return False

    await eventually(refuses, timeout_s=WAITS_S, because="the policy is in force")


REFUSALS: Final = {"a budget": refuse_by_budget, "a policy": refuse_by_policy}


async def everything(stage: Stage, tenant: RawClient) -> dict[str, str]:
    """All texts that the tenant can read, by where."""
    ns = stage.namespace
    paths = [
        f"/api/v1/namespaces/{ns}/pods",
        f"/api/v1/namespaces/{ns}/events",
        f"/apis/events.k8s.io/v1/namespaces/{ns}/events",
        f"/apis/{VOLCANO}/namespaces/{ns}/podgroups",
        QUEUES,
        "/api/v1/nodes",
        *(f"{API}/{one}" for one in CLUSTER_RESOURCES),
        f"{API}/namespaces/{ns}/gangs",
        f"{API}/namespaces/{ns}/decisions",
    ]
    found: dict[str, str] = {}
    for path in paths:
        found[path] = json.dumps(await tenant.get(path))
    for name in (f"{SECRET}-queue", "small", "line"):
        try:
            found[f"queue {name}"] = json.dumps(await tenant.get(f"{API}/queues/{name}"))
        except ApiError as error:
            # It names the queue that was asked for.
            found[f"queue {name}"] = str(error).replace(name, "")
    gangs = ("urgent", "ports", "apart", "second", "poor")
    kubeconfig = stage.control_plane.kubeconfig_for(f"tenant-{ns}")
    for gang in gangs:
        status, said, errors = await tutti(
            "why", gang, f"--namespace={ns}", f"--kubeconfig={kubeconfig}"
        )
        assert status == 0, errors
        found[f"why {gang}"] = said + errors
    found["warnings"] = await stage.tried(_job("ask", "high"))
    question = {**_kind("Fit", "visibility.tutti.dev/v1alpha1")}
    question["spec"] = {"manifests": [_job("ask", "high")]}
    fit = await tenant.request("POST", f"{API}/namespaces/{ns}/fits", question)
    found["fits"] = json.dumps(fit["status"])
    return found


def _job(name: str, priority: str) -> Object:
    pod = {
        "schedulerName": "tutti",
        "priorityClassName": priority,
        "restartPolicy": "Never",
        "containers": [
            {"name": "c", "image": "none", "resources": {"requests": {"cpu": "4"}}},
        ],
    }
    spec = {"parallelism": 2, "completions": 2, "template": {"spec": pod}}
    return {**_kind("Job", "batch/v1"), "metadata": {"name": name}, "spec": spec}


async def submit(
    stage: Stage, name: str, *, queue: str = "default", priority: str = "low", **pods: Any
) -> None:
    """A gang of one pod of the other tenant."""
    await stage.group(name, 1, spec={"priorityClassName": priority, "queue": queue})
    spec = {"priorityClassName": priority, "terminationGracePeriodSeconds": 1, **pods}
    await stage.members(name, 1, requests={"cpu": "4"}, spec=spec)


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_what_the_api_server_says_of_a_victim_is_read_by_no_other_tenant(
    refusal: str, stage: Stage, victim: Victim, tenant: RawClient
) -> None:
    await REFUSALS[refusal](victim)
    try:
        await submit(stage, "urgent", priority="high")
        port = [{"containerPort": PORT, "hostPort": PORT}]
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}
        await submit(stage, "ports", containers=[{**container, "ports": port}])
        term = {
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            "namespaceSelector": {},
            "topologyKey": "kubernetes.io/hostname",
        }
        anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        await submit(stage, "apart", affinity=anti)
        await submit(stage, "second", queue="line")
        await submit(stage, "poor", queue="small")
        await stage.waits("urgent", "NotEnoughResources", "EvictionRefused: ")
        for gang in ("ports", "apart", "second", "poor"):
            await stage.why(gang, "waits")
        texts = await everything(stage, tenant)
        found = {
            where: re.findall(f".{{0,80}}{SECRET}.{{0,40}}", text, re.IGNORECASE)
            for where, text in texts.items()
            if SECRET in text.lower()
        }
        assert found == {}
        logs = "".join(
            path.read_text() for path in (stage.suite.data_dir / "logs").glob("binder-*.log")
        )
        assert SECRET in logs, "the operator reads what the API server said"
    finally:
        for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            await stage.delete(f"{ADMISSION}/{kind}/{SECRET}-policy")
