"""A planner with a small cluster around it: objects go in, cycles run, decisions can be carried
out.

Every cycle is followed by the check of all invariants, so each test that uses a scene is also a
test of those.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from services.gang_planner.core.configuration.configuration import (
    parse_configuration,
    with_defaults,
)
from services.gang_planner.core.cycle import Step
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.gang_settings import Defaults
from services.gang_planner.core.state.holds import Hold
from services.gang_planner.core.state.planner_state import State
from shared.contracts.cluster import Gone, PodChanges, Synced
from shared.contracts.decisions import Act, GangDecision, Note
from shared.contracts.outcomes import Member, MemberResult, Outcome
from shared.contracts.verdicts import Verdict
from shared.kube.resources import PODS, RESOURCE_CLAIMS
from shared.model.objects import (
    Node,
    Owner,
    Pod,
    PodGroup,
    PriorityClass,
    Queue,
    ReferenceObject,
    Resources,
    Shape,
)
from tests.services.gang_planner.core.inside import state_of
from tests.services.gang_planner.core.invariants import validate
from tests.support.snapshots import CHANGES, snapshot_of

GPU = "nvidia.com/gpu"
#: Of `Scene.settle`: more than any test needs.
_CYCLES_MAX = 1_000


def make_shape(requests: dict[str, int] | None = None, **fields: Any) -> bytes:
    """msgpack of a shape; one pod is always asked for."""
    amounts = {"pods": 1, **(requests or {})}
    return msgspec.msgpack.encode(Shape(requests=tuple(sorted(amounts.items())), **fields))


def make_node(name: str, allocatable: dict[str, int] | None = None, **fields: Any) -> Node:
    """A node of 4 CPUs, 16 GiB and one GPU, as in the seeds' experiment, unless given otherwise."""
    amounts = allocatable or {"cpu": 4000, "memory": 16 << 30, GPU: 1, "pods": 110}
    fields.setdefault("resource_version", 1)
    return Node(uid=f"uid-{name}", name=name, allocatable=tuple(sorted(amounts.items())), **fields)


def make_group(name: str, min_member: int, **fields: Any) -> PodGroup:
    """A kube-batch group in namespace `team`."""
    defaults: dict[str, Any] = {
        "uid": f"group-{name}",
        "dialect": "incubator",
        "namespace": "team",
        "resource_version": 1,
    }
    return PodGroup(name=name, min_member=min_member, **{**defaults, **fields})


def make_pods(
    gang: str, count: int, shape: bytes, *, role: str = "worker", **fields: Any
) -> list[Pod]:
    """Members of a gang, owned by a training job."""
    defaults: dict[str, Any] = {
        "namespace": "team",
        "resource_version": 1,
        "ours": True,
        "scheduler_name": "kube-batch",
        "group_name": gang,
        "owner": Owner(api_version="kubeflow.org/v1", kind="TFJob", name=gang, uid=f"owner-{gang}"),
    }
    merged = {**defaults, **fields}
    return [
        Pod(
            uid=f"{gang}-{role}-{index}",
            name=f"{gang}-{role}-{index}",
            role=role,
            index=index,
            shape=shape,
            **merged,
        )
        for index in range(count)
    ]


def amounts(**named: int) -> Resources:
    """Resources by keyword; `gpu` stands for the extended resource."""
    return tuple(sorted((GPU if name == "gpu" else name, amount) for name, amount in named.items()))


class Scene:
    """One planner, leading, with everything that was decided and said so far."""

    def __init__(self, nodes: Iterable[Node] = (), *, conf: str = "", leading: bool = True) -> None:
        if "planner settings" not in conf:
            # As the service has it; a configuration without settings is that of old recordings.
            conf = with_defaults(conf, Defaults(reservations=1))
        self.planner = Planner(parse_configuration(conf))
        #: The resourceVersion up to which the watcher has read claims; None: it reads none.
        self.claims_known_up_to: int | None = None
        #: The same for pods.
        self.pods_known_up_to = 0
        self.now_ms = 10_000
        #: How far the watcher's clock is ahead of the planner's.
        self.watcher_ahead_ms = 0
        self.synced_ms = self.now_ms
        #: Dialects whose kinds are served.
        self.dialects: tuple[str, ...] = ()
        self.epoch = 1
        self.cluster_seq = 0
        self.decision_seq = 1
        self.outcome_seq = 0
        self.pods: dict[str, Pod] = {}
        self.decisions: list[tuple[int, GangDecision]] = []
        self.records: list[tuple[int, Act | Note]] = []
        self.verdicts: dict[str, Verdict] = {}
        self.published: list[Verdict] = []
        self.wakeup_ms: int | None = None
        #: How many pods may be in flight, an argument of cycles.
        self.in_flight_max = 0
        self.load_snapshot(nodes=list(nodes))
        if leading:
            self.planner.lead(self.decision_seq)

    # ------------------------------------------------------------------ cluster state

    def load_snapshot(
        self, nodes: Sequence[Node] = (), *, epoch: int = 1, objects: Sequence[Any] = ()
    ) -> None:
        """Give the planner a snapshot: these nodes, all pods known here, and other objects."""
        self.epoch = epoch
        self.cluster_seq += 1
        page = snapshot_of(
            [*nodes, *self.pods.values(), *objects],
            at_ms=self.watcher_ms,
            epoch=epoch,
            cluster_seq=self.cluster_seq,
        )
        self.planner.load_snapshot([page])
        self.synced_ms = self.now_ms

    def put(
        self, *objects: Node | Pod | PodGroup | Queue | PriorityClass | ReferenceObject
    ) -> None:
        """Objects appear or change, each in a record of its own."""
        for one in objects:
            if isinstance(one, Pod):
                self.pods[one.uid] = one
            self.apply(CHANGES[type(one)](epoch=self.epoch, at_ms=self.watcher_ms, changed=(one,)))

    def remove(self, *objects: Node | Pod | PodGroup | Queue | ReferenceObject) -> None:
        """Objects are gone."""
        for one in objects:
            self.pods.pop(one.uid, None)
            gone = Gone(uid=one.uid, resource_version=one.resource_version + 1)
            self.apply(CHANGES[type(one)](epoch=self.epoch, at_ms=self.watcher_ms, removed=(gone,)))

    def change(self, uid: str, **fields: Any) -> None:
        """A pod changes."""
        pod = self.pods[uid]
        version = fields.pop("resource_version", pod.resource_version + 1)
        self.put(msgspec.structs.replace(pod, resource_version=version, **fields))

    def remove_together(self, *pods: Pod) -> None:
        """Pods are gone, all in one record."""
        gone = tuple(Gone(uid=one.uid, resource_version=one.resource_version + 1) for one in pods)
        for one in pods:
            del self.pods[one.uid]
        self.apply(PodChanges(epoch=self.epoch, at_ms=self.watcher_ms, removed=gone))

    def remove_succeeded(self, pod: Pod) -> None:
        """A pod succeeds and is deleted between two flushes of the watcher."""
        del self.pods[pod.uid]
        gone = Gone(uid=pod.uid, resource_version=pod.resource_version + 1, succeeded=True)
        self.apply(PodChanges(epoch=self.epoch, at_ms=self.watcher_ms, removed=(gone,)))

    def replace_together(
        self, *, gone: Iterable[Pod], made: Iterable[Pod], succeeded: bool = False
    ) -> None:
        """Pods are deleted, and others are created, all between two flushes of the watcher; with
        `succeeded` the former ones also succeed between them.
        """
        changed = tuple(msgspec.structs.replace(pod, node="", phase="Pending") for pod in made)
        removed = tuple(
            Gone(uid=pod.uid, resource_version=pod.resource_version + 1, succeeded=succeeded)
            for pod in gone
        )
        for pod in gone:
            del self.pods[pod.uid]
        self.pods.update({pod.uid: pod for pod in changed})
        record = PodChanges(
            epoch=self.epoch, at_ms=self.watcher_ms, changed=changed, removed=removed
        )
        self.apply(record)

    def pods_of(self, gang: str) -> list[Pod]:
        """The pods that name this gang."""
        return [one for one in self.pods.values() if one.group_name == gang]

    def holds(self) -> list[Hold]:
        """The holds that the planner has."""
        return list(self.state.holds.by_uid.values())

    def heartbeat(self) -> None:
        """The watcher renews its record."""
        known = self.claims_known_up_to
        self.apply(
            Synced(
                epoch=self.epoch,
                at_ms=self.watcher_ms,
                watcher="scene",
                dialects=self.dialects,
                resource_versions=()
                if known is None
                else ((PODS.title, self.pods_known_up_to), (RESOURCE_CLAIMS.title, known)),
            )
        )
        self.synced_ms = self.now_ms

    @property
    def state(self) -> State:
        """The planner's tables."""
        return state_of(self.planner)

    @property
    def watcher_ms(self) -> int:
        """The watcher's clock."""
        return self.now_ms + self.watcher_ahead_ms

    def apply(self, record: Any) -> None:
        """The watcher writes a record."""
        self.cluster_seq += 1
        self.planner.apply_cluster(self.cluster_seq, record)

    # -------------------------------------------------------------------- cycle

    def step(self, *, after_ms: int = 0, fresh: bool = True) -> Step:
        """Run one cycle and log what it decided; invariants are checked before and after."""
        self.now_ms += after_ms
        if fresh:
            self.heartbeat()
        step = self.planner.step(self.now_ms, self.in_flight_max, self.synced_ms)
        for record in (*step.decisions, *step.notes):
            self.decision_seq += 1
            self.planner.decided(self.decision_seq, record)
            self.records.append((self.decision_seq, record))
        self.decisions += [
            (seq, one)
            for seq, one in self.records[
                len(self.records) - len(step.decisions) - len(step.notes) :
            ]
            if isinstance(one, GangDecision)
        ]
        for verdict in step.verdicts:
            self.verdicts[verdict.gang_id] = verdict
        self.published += step.verdicts
        self.wakeup_ms = step.next_wakeup_ms
        validate(self.planner)
        return step

    def settle(self) -> list[GangDecision]:
        """Cycles until nothing is left to do at this instant; the decisions made."""
        before = len(self.decisions)
        for _ in range(_CYCLES_MAX):
            self.step()
            if self.wakeup_ms is None or self.wakeup_ms > self.now_ms:
                return [one for _, one in self.decisions[before:]]
        raise AssertionError("the planner wants to be woken at once again and again")

    # --------------------------------------------------------- carrying it out

    def bind(
        self, decision: GangDecision, *, phase: str = "Pending", only: int | None = None
    ) -> None:
        """CLUSTER shows the members (or the first few) bound as decided."""
        for binding in decision.bindings[:only]:
            self.change(binding.uid, node=binding.node, phase=phase)

    def outcome(
        self,
        decision: GangDecision,
        results: dict[str, MemberResult] | None = None,
        *,
        delivered: int = 1,
        words: str = "denied by policy",
        reason: str = "",
    ) -> None:
        """A binder publishes the outcome of a decision; members not named are bound."""
        seq = next(seq for seq, one in self.decisions if one is decision)
        nodes = {one.uid: one.node for one in decision.bindings}
        found = results or {}
        self.outcome_seq += 1
        self.planner.apply_outcome(
            self.outcome_seq,
            Outcome(
                gang_id=decision.gang_id,
                decision_seq=seq,
                epoch=decision.epoch,
                binder="binder-0",
                delivered=delivered,
                reason=reason,
                bound=len(decision.bindings) - len(found),
                members=tuple(
                    Member(
                        uid=uid,
                        node=nodes[uid],
                        result=result,
                        code=403 if result == "refused" else 0,
                        message=words if result in {"refused", "unprepared"} else "",
                    )
                    for uid, result in found.items()
                ),
            ),
        )

    def run(self, decision: GangDecision) -> None:
        """The decision is carried out and its pods run."""
        self.bind(decision, phase="Running")
        self.outcome(decision)

    def verdict(self, name: str) -> Verdict:
        """The last word on the gang with this name."""
        return next(one for one in reversed(self.published) if one.name == name)

    def where(self, decision: GangDecision) -> dict[str, str]:
        """Member name -> node name."""
        return {one.name: one.node for one in decision.bindings}
