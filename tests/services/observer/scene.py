"""An observer's state, fed with the records of a small cluster."""

from collections.abc import Sequence

import msgspec

from services.observer.state import ObserverState
from shared.contracts.cluster import Gone, NodeChanges, PodChanges, PodGroupChanges
from shared.contracts.decisions import Binding, Cycle, EvictionDecision, GangDecision, Victim
from shared.contracts.observing import GangObserved
from shared.model.objects import Node, Pod, PodGroup, Shape
from tests.support.snapshots import snapshot_of

EPOCH = 2
SHAPE = msgspec.msgpack.encode(Shape(requests=(("cpu", 1000), ("pods", 1))))


def node(name: str, cpu_milli: int = 4000, version: int = 1) -> Node:
    allocatable = (("cpu", cpu_milli), ("pods", 110))
    return Node(uid=f"uid-{name}", name=name, resource_version=version, allocatable=allocatable)


def pod(name: str, group: str = "train", *, on: str = "", role: str = "", ours: bool = True) -> Pod:
    return Pod(
        uid=f"uid-{name}",
        namespace="team",
        name=name,
        resource_version=1,
        shape=SHAPE,
        ours=ours,
        scheduler_name="volcano",
        group_name=group,
        node=on,
        role=role,
        phase="Running" if on else "Pending",
    )


def group(name: str = "train", least: int = 2, **fields: object) -> PodGroup:
    plain = PodGroup(
        uid=f"uid-{name}",
        dialect="volcano",
        namespace="team",
        name=name,
        resource_version=1,
        min_member=least,
    )
    return msgspec.structs.replace(plain, **fields)


class Scene:
    """A state, and the next record's sequence and instant (a second later each time)."""

    def __init__(self, *, stand_ms: int = 10_000, gone_max: int = 10) -> None:
        self.state = ObserverState(stand_ms=stand_ms, gone_max=gone_max)
        self.seq = 0
        self.at_ms = 1_000_000

    def begins(
        self, *nodes: Node, pods: Sequence[Pod] = (), groups: Sequence[PodGroup] = ()
    ) -> None:
        """A snapshot of this, in place of everything."""
        self._next()
        objects = [*nodes, *pods, *groups]
        page = snapshot_of(objects, at_ms=self.at_ms, epoch=EPOCH, cluster_seq=self.seq)
        self.state.replace([page])

    def pods(self, *changed: Pod, gone: Sequence[str] = ()) -> int:
        """Pods changed, and these names went; returns the record's instant."""
        self._next()
        removed = tuple(Gone(uid=f"uid-{name}", resource_version=2) for name in gone)
        record = PodChanges(epoch=EPOCH, at_ms=self.at_ms, changed=changed, removed=removed)
        self.state.apply(self.seq, record)
        return self.at_ms

    def groups(self, *changed: PodGroup) -> None:
        self._next()
        self.state.apply(self.seq, PodGroupChanges(epoch=EPOCH, at_ms=self.at_ms, changed=changed))

    def nodes(self, *changed: Node) -> None:
        self._next()
        self.state.apply(self.seq, NodeChanges(epoch=EPOCH, at_ms=self.at_ms, changed=changed))

    def binds(self, *names: str, on: str = "n0", quorum: int = 0) -> GangDecision:
        """A decision made of everything recorded so far."""
        return GangDecision(
            gang_id="uid-train",
            gang="team/train",
            dialect="volcano",
            epoch=5,
            attempt=1,
            bindings=tuple(
                Binding(uid=f"uid-{name}", namespace="team", name=name, node=on) for name in names
            ),
            quorum=quorum or len(names),
            trace_id="0" * 32,
            first_seen_ms=1,
            cycle=self.cycle(),
        )

    def evicts(
        self, *names: str, for_pods: Sequence[str] = (), via: str = "delete"
    ) -> EvictionDecision:
        return EvictionDecision(
            gang_id="uid-train",
            gang="team/train",
            epoch=5,
            attempt=1,
            victims=tuple(Victim(uid=f"uid-{name}", namespace="team", name=name) for name in names),
            via="delete" if via == "delete" else "eviction",
            reason="RepairDeadline" if via == "delete" else "Preempted",
            bindings=tuple(
                Binding(uid=f"uid-{name}", namespace="team", name=name, node="n0")
                for name in for_pods
            ),
            trace_id="0" * 32,
            cycle=self.cycle(),
        )

    def cycle(self) -> Cycle:
        return Cycle(
            cluster_seq=self.seq, outcomes_seq=0, now_ms=self.at_ms, configuration="digest"
        )

    def row(self, gang: str = "team/train") -> GangObserved:
        found = [one for one in self.state.build_report(self.at_ms).gangs if one.gang == gang]
        assert len(found) == 1, found
        return found[0]

    def _next(self) -> None:
        self.seq += 1
        self.at_ms += 1_000
