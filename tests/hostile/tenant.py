"""A tenant with the role `edit` in one namespace, and everything hostile that it may write with it.

It knows the names and UIDs of another tenant's objects, which logs and dashboards show. Its own
namespace has a ResourceQuota, as docs/security.md asks of an operator.
"""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from shared.contracts import annotations
from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.kubeconfig import write_kubeconfig
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import INCUBATOR, SIGS, VOLCANO
from tutti.rights.rules import user_roles

RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
#: What the role `edit` is made of: no controller aggregates roles in the tests' control plane.
AGGREGATED: Final = ("system:aggregate-to-view", "system:aggregate-to-edit")
#: What an operator gives a tenant that is not trusted.
QUOTA: Final = {"requests.cpu": "2", "pods": "400"}
#: Labels of its nodes, which have a taint.
POOL: Final = {"pool": "evil"}
#: UIDs that the API server stores in an ownerReference without looking at them.
UIDS: Final = ("a b", "..", "*", ">", "a.b", "\N{SNOWMAN}", "x" * 3000, "$KV.LEASES.gang-planner")
_SECONDS: Final = "999999999"
#: Just below the API server's limit for one request, which etcd shares.
_LARGE: Final = 900_000
_SCHEDULERS: Final = ("tutti", "volcano", "kube-batch")


class Tenant:
    """One tenant's hands: a client with its own token, and what the API server said to it."""

    def __init__(self, api: RawClient, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.refused: list[str] = []
        self.stored = 0
        self._numbers = itertools.count()

    async def create(self, version: str, plural: str, manifest: Object) -> Object | None:
        """Create an object; None if the API server refuses it."""
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        named = {"name": f"evil-{next(self._numbers)}"} | manifest["metadata"]
        body = {"apiVersion": version} | manifest | {"metadata": named}
        try:
            stored = await self.api.create(f"{root}/namespaces/{self.namespace}/{plural}", body)
        except ApiError as error:
            self.refused.append(f"{plural} {named['name']}: {str(error)[:300]}")
            return None
        self.stored += 1
        return stored

    async def pod(
        self,
        *,
        requests: Mapping[str, str] | None = None,
        spec: Object | None = None,
        **given: Any,
    ) -> Object | None:
        """Create a pod that asks for next to nothing, on the tenant's own nodes: it takes no
        capacity that others could have had. `given`: as `pod_manifest` has it.
        """
        spec = {"nodeSelector": POOL, "tolerations": [{"operator": "Exists"}], **(spec or {})}
        manifest = pod_manifest(
            f"evil-{next(self._numbers)}",
            requests={"cpu": "10m", **(requests or {})},
            spec=spec,
            **given,
        )
        return await self.create("v1", "pods", manifest)


@asynccontextmanager
async def tenant_of(
    control_plane: ControlPlane, admin: RawClient, namespace: str
) -> AsyncIterator[Tenant]:
    """The namespace gets a quota, and a ServiceAccount with `edit` there: Kubernetes' own role, and
    what the chart adds to it.
    """
    quota = {"metadata": {"name": "quota"}, "spec": {"hard": QUOTA}}
    await admin.create(f"/api/v1/namespaces/{namespace}/resourcequotas", quota)
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await admin.create(accounts, {"metadata": {"name": "tenant"}})
    added = user_roles()
    for role in ("view", "edit"):
        rules = {"metadata": {"name": f"tutti-{role}"}, "rules": added[role]["rules"]}
        await admin.request(
            "PATCH",
            f"{RBAC}/clusterroles/tutti-{role}?fieldManager=test&force=true",
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"} | rules,
            content_type="application/apply-patch+yaml",
        )
    for role in (*AGGREGATED, "tutti-view", "tutti-edit"):
        binding = {
            "metadata": {"name": role.replace(":", "-")},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}],
        }
        await admin.create(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)
    request = {"spec": {"expirationSeconds": 3600}}
    token = (await admin.create(f"{accounts}/tenant/token", request))["status"]["token"]
    kubeconfig = write_kubeconfig(
        control_plane.dir / f"{namespace}-tenant.kubeconfig",
        server=control_plane.server,
        ca_pem=control_plane.authority.certificate_pem,
        credentials=token,
        namespace=namespace,
    )
    async with RawClient(kubeconfig) as client:
        yield Tenant(client, namespace)


def _owner(target: Object) -> Object:
    metadata = target["metadata"]
    reference = {"apiVersion": target["apiVersion"], "kind": target["kind"]}
    return reference | {"name": metadata["name"], "uid": metadata["uid"], "controller": True}


def _many(count: int) -> Iterator[str]:
    return (f"{'n' * 40}-{number}" for number in range(count))


# Each takes the tenant, and the other tenant's objects: what it is called says what it tries.


async def forge_owners(tenant: Tenant, targets: list[Object]) -> None:
    """Pods, budgets and groups that name the other tenant's workloads as their owners."""
    for target in targets:
        owner = _owner(target)
        seconds = {annotations.START_DEADLINE_SECONDS: "3"}
        for scheduler in _SCHEDULERS:
            notes = {annotations.GROUP_MIN_MEMBER: "9", annotations.OWNER_MIN_MEMBER: "9"}
            await tenant.pod(owner=owner, scheduler_name=scheduler, annotations=notes | seconds)
        spec = {"minAvailable": 9, "selector": {"matchLabels": {"app": "any"}}}
        metadata = {"annotations": seconds, "ownerReferences": [owner]}
        budget = {"metadata": metadata, "spec": spec}
        await tenant.create("policy/v1", "poddisruptionbudgets", budget)
        for version in (VOLCANO, INCUBATOR, SIGS):
            group = {"kind": "PodGroup", "metadata": metadata, "spec": {"minMember": 9}}
            await tenant.create(version, "podgroups", group)


async def write_any_uid(tenant: Tenant, _: list[Object]) -> None:
    """Owners whose UIDs are no UIDs, of pods that fit and of pods that do not."""
    for uid, scheduler in itertools.product(UIDS, _SCHEDULERS):
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": True}
        for cpu in ("10m", "1900m"):
            await tenant.pod(
                owner=owner | {"uid": uid}, scheduler_name=scheduler, requests={"cpu": cpu}
            )


async def take_names(tenant: Tenant, targets: list[Object]) -> None:
    """Groups, Jobs and pods with the names of the other tenant's."""
    for target in targets:
        name = target["metadata"]["name"]
        for version in (VOLCANO, INCUBATOR, SIGS):
            metadata = {"name": name, "annotations": {annotations.DEGRADED_GRACE_SECONDS: "1"}}
            group = {"kind": "PodGroup", "metadata": metadata, "spec": {"minMember": 99}}
            await tenant.create(version, "podgroups", group)
        await tenant.pod(annotations={annotations.GROUP_NAME: name})
        await tenant.pod(
            annotations={annotations.GROUP_NAME: f"{targets[0]['metadata']['namespace']}/{name}"}
        )


async def reserve_everything(tenant: Tenant, _: list[Object]) -> None:
    """A small pod whose group reserves the cluster for as long as it may."""
    for number in range(3):
        name = f"greedy-{number}"
        notes = {annotations.RESERVE_SECONDS: _SECONDS, annotations.HOLD_SECONDS: _SECONDS}
        spec = {"minMember": 1, "minResources": {"cpu": "31500m"}}
        group = {"kind": "PodGroup", "metadata": {"name": name, "annotations": notes}, "spec": spec}
        await tenant.create(VOLCANO, "podgroups", group)
        await tenant.pod(annotations={annotations.GROUP_NAME: name} | notes)


async def command_queues(tenant: Tenant, targets: list[Object]) -> None:
    """Commands on queues, and on the other tenant's Jobs."""
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "default"}
    jobs = [_owner(target) for target in targets]
    actions = itertools.product(("CloseQueue", "AbortJob", "TerminateJob"), (queue, *jobs))
    for action, target in actions:
        command = {"kind": "Command", "metadata": {}, "action": action, "target": target}
        await tenant.create("bus.volcano.sh/v1alpha1", "commands", command)


async def be_large(tenant: Tenant, _: list[Object]) -> None:
    """Objects as large as the API server takes them, of the kinds that Tutti reads."""
    labels = dict.fromkeys(_many(_LARGE // 60), "v")
    selector = {"matchLabels": labels}
    budget = {"metadata": {}, "spec": {"minAvailable": 1, "selector": selector}}
    await tenant.create("policy/v1", "poddisruptionbudgets", budget)
    claim = {
        "metadata": {},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "selector": selector,
        },
    }
    await tenant.create("v1", "persistentvolumeclaims", claim)
    hard = {f"count/{name}.example.com": "1" for name in _many(8000)}
    await tenant.create("v1", "resourcequotas", {"metadata": {}, "spec": {"hard": hard}})
    await tenant.pod(requests={f"evil.example/{name}": "1" for name in _many(5000)})
    tolerations = [
        {"key": f"k{number}", "operator": "Exists", "effect": "NoSchedule"} for number in range(16)
    ]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "tolerations": tolerations}}
    devices = {"requests": [request | {"name": f"r{number}"} for number in range(32)]}
    await tenant.create(
        "resource.k8s.io/v1", "resourceclaims", {"metadata": {}, "spec": {"devices": devices}}
    )
    spec = {
        "minMember": 1,
        "minTaskMember": dict.fromkeys(_many(8000), 1),
        "minResources": {f"evil.example/{name}": "1" for name in _many(5000)},
    }
    await tenant.create(VOLCANO, "podgroups", {"kind": "PodGroup", "metadata": {}, "spec": spec})
    affinity = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": f"evil.example/{number}",
                    "labelSelector": {"matchLabels": {"app": f"a{number}"}},
                }
                for number in range(2000)
            ]
        }
    }
    await tenant.pod(spec={"affinity": affinity})


async def be_many(tenant: Tenant, _: list[Object]) -> None:
    """Many pods of one gang, each with a role of its own that is as long as it may be."""
    await tenant.create(
        VOLCANO,
        "podgroups",
        {"kind": "PodGroup", "metadata": {"name": "roles"}, "spec": {"minMember": 500}},
    )
    for number in range(120):
        role = f"{number:04d}{'r' * 249}"
        await tenant.pod(annotations={annotations.GROUP_NAME: "roles", annotations.TASK_SPEC: role})


async def name_everything(tenant: Tenant, _: list[Object]) -> None:
    """Queues, classes, topology keys and resources that do not exist."""
    for number in range(40):
        spec = {
            "minMember": 1,
            "queue": f"queue-{number}-{'q' * 200}",
            "priorityClassName": f"class-{number}",
        }
        await tenant.create(
            VOLCANO, "podgroups", {"kind": "PodGroup", "metadata": {}, "spec": spec}
        )
        spread = [
            {
                "maxSkew": 1,
                "topologyKey": f"evil.example/{number}",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {},
            }
        ]
        await tenant.pod(
            spec={"topologySpreadConstraints": spread, "nodeSelector": {f"evil-{number}": "x"}},
            annotations={annotations.QUEUE_NAME: f"q{number}"},
        )


async def claim_claims(tenant: Tenant, targets: list[Object]) -> None:
    """Claims that are owned by the other tenant's pods, and pods that use them."""
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
    for target in targets:
        metadata = {
            "ownerReferences": [_owner(target)],
            "annotations": {
                "resource.kubernetes.io/extended-resource-claim": "true",
                "resource.kubernetes.io/pod-claim-name": "r",
            },
        }
        claim = await tenant.create(
            "resource.k8s.io/v1",
            "resourceclaims",
            {"metadata": metadata, "spec": {"devices": devices}},
        )
        if claim is not None:
            claims = [{"name": "r", "resourceClaimName": claim["metadata"]["name"]}]
            await tenant.pod(spec={"resourceClaims": claims})


async def change_everything(tenant: Tenant, targets: list[Object]) -> None:
    """Change owners, labels and annotations of objects that exist, and delete some of them."""
    pods = (await tenant.api.get(f"/api/v1/namespaces/{tenant.namespace}/pods"))["items"]
    for number, pod in enumerate(pods[:60]):
        path = f"/api/v1/namespaces/{tenant.namespace}/pods/{pod['metadata']['name']}"
        owner = _owner(targets[number % len(targets)])
        body = {
            "metadata": {
                "ownerReferences": [owner],
                "annotations": {annotations.GROUP_MIN_MEMBER: "2"},
            }
        }
        try:
            if number % 3:
                await tenant.api.patch(path, body)
            else:
                await tenant.api.delete(path, {"gracePeriodSeconds": 0})
        except ApiError as error:
            tenant.refused.append(str(error)[:300])


Attempt = Callable[[Tenant, list[Object]], Awaitable[None]]
ATTEMPTS: Final = (
    forge_owners,
    write_any_uid,
    take_names,
    reserve_everything,
    command_queues,
    be_large,
    be_many,
    name_everything,
    claim_claims,
    change_everything,
)
