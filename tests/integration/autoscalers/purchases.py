"""What Karpenter buys in a test and gives back: facts from the API server and from its own log."""

import json
from typing import Any, Final, NamedTuple

from shared.contracts import annotations
from tests.controlplane.autoscalers.karpenter import (
    INSTANCE_TYPE_LABEL,
    NODE_CLAIMS,
    NODE_CLASSES,
    NODE_POOLS,
    POOL_LABEL,
    node_class,
    node_pool,
)
from tests.controlplane.client import Object
from tests.controlplane.nodes import delete_pods, pod_manifest
from tests.controlplane.processes import Component
from tests.integration.stage import Stage
from tests.support.waiting import eventually

#: Karpenter waits a second for more pods, and nodes need a moment to register.
BOUGHT_S: Final = 60.0
#: It looks for nodes to give back every 10 s, and looks again after 15 s before it acts.
GIVEN_BACK_S: Final = 120.0
_COMPUTED: Final = "computed new nodeclaim(s) to fit pod(s)"
CONTROL_CPUS: Final = 3


class Decision(NamedTuple):
    """One batch of waiting pods for which Karpenter bought nodes."""

    nodes: int
    pods: int


class Purchases:
    """Karpenter on the cluster of a stage."""

    def __init__(self, stage: Stage, karpenter: Component) -> None:
        self.stage = stage
        self._karpenter = karpenter
        self._controls = 0

    async def offer(
        self, name: str, *types: str, registration_delay: str = "0s", **pool: Any
    ) -> None:
        """Let Karpenter buy nodes of these types: a pool of this name (`node_pool`)."""
        await self.stage.api.create(
            NODE_CLASSES, node_class(name, registration_delay=registration_delay)
        )
        await self.stage.api.create(NODE_POOLS, node_pool(name, types, **pool))

        async def is_ready() -> bool:
            found = await self.stage.api.get(f"{NODE_POOLS}/{name}")
            conditions = found.get("status", {}).get("conditions", ())
            return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)

        await eventually(is_ready, because=f"Karpenter may use the pool {name}")

    async def change(self, name: str, **pool: Any) -> None:
        """Change a pool's spec by a merge patch."""
        await self.stage.api.patch(f"{NODE_POOLS}/{name}", {"spec": pool})

    async def claims(self, pool: str = "") -> list[Object]:
        """The NodeClaims: all, or those of a pool."""
        listed = await self.stage.api.get(NODE_CLAIMS)
        return [one for one in listed["items"] if pool in ("", _pool(one))]

    async def nodes(self, pool: str = "") -> dict[str, str]:
        """Instance type by name of the nodes that were bought: all, or those of a pool."""
        listed = await self.stage.api.get("/api/v1/nodes")
        return {
            one["metadata"]["name"]: one["metadata"]["labels"][INSTANCE_TYPE_LABEL]
            for one in listed["items"]
            if _pool(one) and pool in ("", _pool(one))
        }

    def decisions(self) -> list[Decision]:
        """All batches until now, from the log."""
        lines = self._karpenter.log_path.read_text().splitlines()
        # Its first line, and those of a crash, are no JSON.
        records = [json.loads(line) for line in lines if line.startswith("{") and _COMPUTED in line]
        return [Decision(record["nodeclaims"], record["pods"]) for record in records]

    async def buy_for_control(self, **spec: Any) -> str:
        """Create a pod of no gang that fits on no node, and wait until it is bound to a node that
        was bought for it alone: the node's name.

        Karpenter lists all waiting pods for each decision. So every pod that was marked before
        this call, and for which it bought nothing here, is one for which it buys nothing.
        """
        before = self.decisions()
        claims = {one["metadata"]["name"] for one in await self.claims()}
        self._controls += 1
        name = f"control-{self._controls}"
        requests = {"cpu": str(CONTROL_CPUS)}
        await self.stage.bare_pods(pod_manifest(name, requests=requests, spec=spec))

        async def is_bound() -> str:
            return (await self.stage.placed()).get(name, "")

        node = await eventually(is_bound, timeout_s=BOUGHT_S, because=f"{name} is bound")
        assert self.decisions()[len(before) :] == [Decision(nodes=1, pods=1)]
        (claim,) = [one for one in await self.claims() if one["metadata"]["name"] not in claims]
        assert claim["spec"]["resources"]["requests"]["cpu"] == requests["cpu"]

        async def is_its_node() -> bool:
            found = await self.stage.api.get(f"{NODE_CLAIMS}/{claim['metadata']['name']}")
            return bool(found.get("status", {}).get("nodeName") == node)

        await eventually(is_its_node, because="it is bound to the node that was bought")
        return node

    async def gives_back(self, pool: str = "") -> None:
        """Wait until no node is left that was bought: of all, or of a pool."""

        async def none_left() -> bool:
            return not await self.nodes(pool) and not await self.claims(pool)

        await eventually(none_left, timeout_s=GIVEN_BACK_S, because="all nodes are given back")

    async def clear(self) -> None:
        """Delete all workloads, pools and nodes that were bought."""
        stage = self.stage
        background = {"propagationPolicy": "Background"}
        await stage.api.delete(stage.path("jobs", version="batch/v1"), background)
        await stage.api.delete(stage.group_path(""))

        async def none_left() -> bool:
            await delete_pods(stage.api, stage.namespace)
            return not await stage.pods()

        await eventually(none_left, timeout_s=BOUGHT_S, because="no pod is left")
        for path in (NODE_POOLS, NODE_CLAIMS):
            await stage.api.delete(path)
        await self.gives_back()
        await stage.api.delete(NODE_CLASSES)


def job_of(gang: str, count: int, cpus: int, pool: str = "") -> Object:
    """A Job whose pods are the members of an existing group, so that evicted ones are made again.

    They are made at once: evictions count as no failures, after which the Job controller would
    wait ten seconds and longer.

    Args:
        pool: The NodePool whose nodes they may use; "": those of any.
    """
    request = {"requests": {"cpu": str(cpus)}}
    spec: Object = {
        "schedulerName": "tutti",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "none", "resources": request}],
    }
    if pool:
        spec["nodeSelector"] = {POOL_LABEL: pool}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": gang},
        "spec": {
            "parallelism": count,
            "completions": count,
            "podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
            },
            "template": {
                "metadata": {"annotations": {annotations.GROUP_NAME: gang}},
                "spec": spec,
            },
        },
    }


def _pool(item: Object) -> str:
    return str(item["metadata"].get("labels", {}).get(POOL_LABEL, ""))
