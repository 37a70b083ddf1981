"""One planner with a cluster made for measuring: objects go in unmeasured, cycles are measured."""

import gc
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from services.gang_planner.core.configuration.configuration import (
    parse_configuration,
    with_defaults,
)
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.gang_settings import Defaults
from shared.contracts.cluster import (
    ClaimChanges,
    CsiDriverChanges,
    DeviceClassChanges,
    NodeChanges,
    PodChanges,
    PodGroupChanges,
    QueueChanges,
    ResourceClaimChanges,
    ResourceSliceChanges,
    StorageCapacityChanges,
    StorageClassChanges,
)
from shared.contracts.decisions import EvictionDecision, GangDecision
from shared.model.devices import (
    DeviceAttribute,
    DeviceClass,
    DeviceDetails,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from shared.model.objects import NetworkTopology, Node, Owner, Pod, PodGroup, Queue, Shape
from shared.model.reference_objects import Claim, CsiDriver, StorageCapacity, StorageClass
from shared.model.terms import Requirement, Selector
from tests.support.snapshots import snapshot_page

#: Racks and blocks of the cases with a topology.
NODES_PER_RACK = 32
RACKS_PER_BLOCK = 16
RACK, BLOCK, ZONE, HOSTNAME = "rack", "block", "topology.kubernetes.io/zone", "hostname"
_NOW_MS = 10_000


def make_nodes(count: int, *, cpu_milli: int = 64_000, pods: int = 110) -> tuple[Node, ...]:
    """Equal nodes in three zones, in racks and blocks."""
    return tuple(
        Node(
            uid=f"node-uid-{i:05d}",
            name=f"node-{i:05d}",
            resource_version=1,
            labels=(
                (BLOCK, f"b{i // (NODES_PER_RACK * RACKS_PER_BLOCK)}"),
                (HOSTNAME, f"node-{i:05d}"),
                (RACK, f"r{i // NODES_PER_RACK}"),
                (ZONE, f"zone-{i % 3}"),
            ),
            allocatable=(("cpu", cpu_milli), ("memory", 256 << 30), ("pods", pods)),
        )
        for i in range(count)
    )


def shape_of(cpu_milli: int, **fields: Any) -> bytes:
    """A shape as pods carry it."""
    requests = (("cpu", cpu_milli), ("memory", 512 << 20), ("pods", 1))
    return msgspec.msgpack.encode(Shape(requests=requests, **fields))


def make_gang(
    name: str,
    size: int,
    shapes: Sequence[bytes],
    *,
    quorum: int | None = None,
    created_ms: int = 0,
    topology: NetworkTopology | None = None,
    queue: str = "",
    nodes: Sequence[str] = (),
    roles: int | None = None,
    **fields: Any,
) -> tuple[PodGroup, list[Pod]]:
    """A gang whose members have these shapes by turns; on `nodes`, by turns, they run. Without a
    `quorum` it needs all of them. They have as many `roles`, by turns; None: one for each shape.
    """
    group = PodGroup(
        uid=f"group-{name}",
        dialect="incubator",
        namespace="team",
        name=name,
        resource_version=10,
        created_ms=created_ms,
        min_member=size if quorum is None else quorum,
        topology=topology,
        queue=queue,
    )
    owner = Owner(api_version="kubeflow.org/v1", kind="PyTorchJob", name=name, uid=f"owner-{name}")
    pods = [
        Pod(
            uid=f"{name}-{index}",
            namespace="team",
            name=f"{name}-{index}",
            resource_version=100,
            shape=shapes[index % len(shapes)],
            ours=True,
            scheduler_name="kube-batch",
            group_name=name,
            role=f"r{index % (roles or len(shapes))}",
            index=index,
            owner=owner,
            node=nodes[index % len(nodes)] if nodes else "",
            phase="Running" if nodes else "Pending",
            **fields,
        )
        for index in range(size)
    ]
    return group, pods


def make_storage(world: "World", claims: int) -> None:
    """Claims that wait for their first consumer, of a class whose driver publishes per rack what it
    has left.
    """
    stamp: dict[str, Any] = {"epoch": 1, "at_ms": _NOW_MS}
    driver = "csi.example"
    made = StorageClass(
        uid="class",
        name="fast",
        resource_version=1,
        provisioner=driver,
        wait_for_first_consumer=True,
    )
    racks = sorted({dict(node.labels)[RACK] for node in make_nodes(world.nodes)})
    left = tuple(
        StorageCapacity(
            uid=f"left-{rack}",
            namespace="storage",
            name=rack,
            resource_version=1,
            storage_class="fast",
            capacity_bytes=1 << 40,
            node_topology=Selector(
                requirements=(Requirement(key=RACK, operator="In", values=(rack,)),)
            ),
        )
        for rack in racks
    )
    wanted = tuple(
        Claim(
            uid=f"claim-{at}",
            namespace="team",
            name=f"data-{at}",
            resource_version=1,
            storage_class="fast",
            request_bytes=1 << 30,
            access_modes=("ReadWriteOnce",),
            phase="Pending",
        )
        for at in range(claims)
    )
    csi = CsiDriver(uid="driver", name=driver, resource_version=1, storage_capacity=True)
    world.apply(StorageClassChanges(**stamp, changed=(made,)))
    world.apply(CsiDriverChanges(**stamp, changed=(csi,)))
    world.apply(StorageCapacityChanges(**stamp, changed=left))
    world.apply(ClaimChanges(**stamp, changed=wanted))


def make_devices(world: "World", per_node: int, claims: Iterable[str]) -> None:
    """Devices of NVIDIA's kind on each node, and claims for one each of the class `gpu`, whose
    selectors read an attribute.
    """
    stamp: dict[str, Any] = {"epoch": 1, "at_ms": _NOW_MS}
    driver = "gpu.example.com"

    def details(node: int, index: int) -> DeviceDetails:
        values = {"type": "gpu", "productName": "B200", "uuid": f"GPU-{node:05d}-{index}"}
        return DeviceDetails(
            attributes=tuple(
                DeviceAttribute(name=f"{driver}/{name}", value=value)
                for name, value in values.items()
            ),
            capacity=((f"{driver}/memory", "192Gi"),),
        )

    selectors = f"device.driver == '{driver}'", f"device.attributes['{driver}'].type == 'gpu'"
    made = DeviceClass(uid="class", name="gpu", resource_version=1, selectors=selectors)
    slices = tuple(
        ResourceSlice(
            uid=f"slice-{node.name}",
            name=f"slice-{node.name}",
            resource_version=1,
            driver=driver,
            pool=node.name,
            generation=1,
            pool_slices=1,
            node=node.name,
            devices=tuple(f"gpu-{index}" for index in range(per_node)),
            details=tuple(details(at, index) for index in range(per_node)),
        )
        for at, node in enumerate(make_nodes(world.nodes))
    )
    wanted = tuple(
        ResourceClaim(
            uid=f"uid-{name}",
            namespace="team",
            name=name,
            resource_version=1,
            requests=(DeviceRequest(name="gpu", device_class="gpu"),),
        )
        for name in claims
    )
    world.apply(DeviceClassChanges(**stamp, changed=(made,)))
    world.apply(ResourceSliceChanges(**stamp, changed=slices))
    world.apply(ResourceClaimChanges(**stamp, changed=wanted))


class World:
    """The planner, and what it decided."""

    def __init__(self, nodes: Iterable[Node], *, configuration: str = "") -> None:
        listed = tuple(nodes)
        self.nodes = len(listed)
        # As the service has it.
        configuration = with_defaults(configuration, Defaults(reservations=1))
        self.planner = Planner(parse_configuration(configuration))
        self.cpu_s = 0.0
        #: CPU of the slowest cycle.
        self.cycle_s = 0.0
        self.cycles = 0
        self._cluster_seq = 10
        self._decision_seq = 10
        known = NodeChanges(epoch=1, at_ms=_NOW_MS, changed=listed)
        self.planner.load_snapshot([snapshot_page(known, at_ms=_NOW_MS)])
        self.planner.lead(1)

    def apply(self, record: Any) -> None:
        """One record of CLUSTER."""
        self._cluster_seq += 1
        self.planner.apply_cluster(self._cluster_seq, record)

    def put(
        self,
        *,
        groups: Iterable[PodGroup] = (),
        pods: Iterable[Pod] = (),
        queues: Iterable[Queue] = (),
    ) -> None:
        """Objects appear."""
        stamp: dict[str, Any] = {"epoch": 1, "at_ms": _NOW_MS}
        changed = tuple(queues)
        if changed:
            # Whatever happens to queues makes the planner look at every gang.
            self.apply(QueueChanges(**stamp, changed=changed))
        self.apply(PodGroupChanges(**stamp, changed=tuple(groups)))
        self.apply(PodChanges(**stamp, changed=tuple(pods)))

    def put_gangs(self, gangs: Iterable[tuple[PodGroup, list[Pod]]]) -> None:
        """Gangs appear, groups first."""
        listed = list(gangs)
        self.put(
            groups=(group for group, _ in listed), pods=(pod for _, pods in listed for pod in pods)
        )

    def decide(self) -> tuple[list[GangDecision], list[EvictionDecision]]:
        """Cycles until nothing is left to do; their CPU is counted, appending is not.

        Collects garbage first: otherwise a pass over what the setup allocated may fall into the
        cycles of one version and not into those of another.
        """
        gc.collect()
        self.cpu_s = self.cycle_s = 0.0
        self.cycles = 0
        binds: list[GangDecision] = []
        evictions: list[EvictionDecision] = []
        while True:
            before = time.process_time()
            step = self.planner.step(_NOW_MS)
            for record in (*step.decisions, *step.notes):
                self._decision_seq += 1
                self.planner.decided(self._decision_seq, record)
            took = time.process_time() - before
            self.cpu_s += took
            self.cycle_s = max(self.cycle_s, took)
            self.cycles += 1
            for one in step.decisions:
                (binds if isinstance(one, GangDecision) else evictions).append(one)  # type: ignore[arg-type]  # the branches keep them apart
            if step.next_wakeup_ms is None or step.next_wakeup_ms > _NOW_MS:
                return binds, evictions
