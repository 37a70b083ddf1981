"""The cluster around Tutti: the API server, nodes, gangs, and a second scheduler on the same nodes.

The second scheduler sees what is bound and nothing of what Tutti has decided, so both take the same
room now and then: the API server binds both, and a kubelet refuses the later one.
"""

from collections.abc import Callable
from typing import Any, Final

from shared.contracts import annotations
from shared.dialects.discovery import kinds
from shared.kube.resources import NODES, PODS, QUEUES_VOLCANO
from tests.simulation.claims import Claims, ClaimShape
from tests.simulation.kube_api import ENDED, ApiServer
from tests.simulation.kube_server import Etcd, with_
from tests.simulation.lives import NAMESPACE, Lives
from tests.simulation.loop import SimLoop
from tests.simulation.nodes import Nodes, cpu_milli
from tests.simulation.tenant import Tenant
from tests.simulation.workload import OTHER_QUEUE, Shape, draw

FOREIGN: Final = "other-scheduler"


class World:
    """Everything that is not Tutti and not NATS."""

    def __init__(
        self,
        loop: SimLoop,
        shape: Shape,
        *,
        on_fault: Callable[[str], None],
        note: Callable[[str, str], None],
        claims: ClaimShape | None = None,
        tenant: bool = False,
    ) -> None:
        """`on_fault(kind)` and `note(gang, what)` are called with what happens; with `claims` some
        gangs ask for volumes and devices; with `tenant` a user of another namespace is hostile.
        """
        self.loop = loop
        self.shape = shape
        resources = sorted({kind.resource for kind in kinds()})
        self.etcd = Etcd(loop, resources)
        self.api = ApiServer(self.etcd, on_fault=on_fault)
        self.nodes = Nodes(self.etcd, self._runs_for, may_end=self._may_end)
        self.lives = Lives(self.etcd, self.nodes, note)
        self.claims = Claims(self.etcd, self.lives, claims, note=note) if claims else None
        self.tenant = Tenant(self.etcd, self.lives, note) if tenant else None
        self.api.policies.append(self.lives.policy)
        if self.claims is not None:
            self.api.patch_policies.append(self.claims.devices.policy)
        self._rng = loop.dice.rng("foreign")
        self._foreign = 0
        #: Names of the gangs that take part; None: all.
        self.only: frozenset[str] | None = None

    def begin(self) -> None:
        """Nodes join, and plans begin to arrive."""
        for number in range(self.shape.nodes):
            self.nodes.add(f"node-{number}", self.shape.node_cpu_milli)
        for name in ("default", OTHER_QUEUE):
            # Runs are seconds long: a notice of a minute would be longer.
            notes = {annotations.RUN_LIMIT_NOTICE: "1s"}
            metadata = {"name": name, "annotations": notes}
            manifest = {"metadata": metadata, "spec": {"weight": 1}, "status": {}}
            self.etcd.create(QUEUES_VOLCANO, manifest, by="user")
        plans = draw(self.loop.dice.rng("workload"), self.shape)
        if self.claims is not None:
            self.claims.begin(plans, self.shape)
        self.lives.begin([one for one in plans if self.only is None or one.name in self.only])

        if self.tenant is not None:
            self.tenant.begin()

    def _runs_for(self, pod: dict[str, Any]) -> int:
        return self.lives.runs_for(pod)

    def _may_end(self, pod: dict[str, Any]) -> bool:
        return self.lives.may_end(pod)

    def foreign_burst(self, count: int) -> None:
        """The other scheduler places pods of its own."""
        for _ in range(count):
            self._foreign += 1
            manifest = {
                "metadata": {
                    "name": f"foreign-{self._foreign}",
                    "namespace": NAMESPACE,
                    "annotations": {"simulation/runs-ms": str(self._rng.randint(500, 6000))},
                },
                "spec": {
                    "schedulerName": FOREIGN,
                    "containers": [
                        {
                            "name": "main",
                            "resources": {
                                "requests": {"cpu": f"{self._rng.choice((1, 2, 3))}000m"}
                            },
                        }
                    ],
                },
                "status": {"phase": "Pending"},
            }
            pod = self.etcd.create(PODS, manifest, by=FOREIGN)
            assert pod is not None
            self.loop.at(0.01 + self._rng.random() * 0.2, self._bind_foreign, pod, 40)

    def _bind_foreign(self, pod: dict[str, Any], tries: int) -> None:
        now = self.etcd.get(PODS, NAMESPACE, pod["metadata"]["name"])
        if now is None:
            return
        fitting = [name for name, free in self._free().items() if free >= cpu_milli(pod)]
        if not fitting:
            if tries:
                self.loop.at(0.5, self._bind_foreign, pod, tries - 1)
            else:
                self.etcd.remove(PODS, now, by=FOREIGN)
            return
        spec = {"nodeName": self._rng.choice(fitting)}
        self.etcd.change(PODS, now, lambda old: with_(old, spec=spec), by=FOREIGN, verb="bind")
        self.loop.at(30.0, self._forget_foreign, pod)

    def _forget_foreign(self, pod: dict[str, Any]) -> None:
        """Its job has been looked at, and is cleaned up."""
        self.etcd.remove(PODS, pod, by=FOREIGN)

    def _free(self) -> dict[str, int]:
        """Room by node, as a scheduler sees it that looks at what is bound."""
        free = {
            node["metadata"]["name"]: self.nodes.kubelets[node["metadata"]["name"]].cpu_milli
            for node in self.etcd.all(NODES)
            if not node["spec"].get("unschedulable")
        }
        for pod in self.etcd.all(PODS):
            node = pod["spec"].get("nodeName")
            if node in free and pod["status"].get("phase") not in ENDED:
                free[node] -= cpu_milli(pod)
        return free

    def heal(self) -> None:
        """No more faults: everything that is broken is whole again."""
        if self.tenant is not None:
            self.tenant.leave()
        self.api.rates = type(self.api.rates)()
        self.api.down_until_s = self.api.hung_until_s = 0.0
        for name, kubelet in list(self.nodes.kubelets.items()):
            if not kubelet.alive:
                self.nodes.revive(name)
            self.nodes.cordon(name, unschedulable=False)
        if self.claims is not None:
            self.claims.heal()

    def settled(self) -> bool:
        """Every gang has ended, and what it asked for is given back."""
        return not self.lives.unfinished() and not (self.claims and self.claims.left())
