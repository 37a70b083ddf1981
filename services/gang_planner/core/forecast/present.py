"""The present of a planner that was copied: what is in flight arrives at once, then time goes on as
the caller says, and the cluster changes as the caller changes it.
"""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final

import msgspec

from services.gang_planner.core.forecast.stage import Stage
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.gangs import Gang
from shared.contracts.decisions import Act, EvictionDecision, GangDecision, Note, NoteOpened
from shared.contracts.pending_reasons import PendingReason
from shared.model.objects import Node, Pod, Shape

if TYPE_CHECKING:
    from services.gang_planner.core.state.preemptions import Preemption
    from services.gang_planner.core.state.reservations import OpenEviction

#: No API server comes as far.
_VERSION: Final = 1 << 60
_HOSTNAME: Final = "kubernetes.io/hostname"
_decode_shape: Final = msgspec.msgpack.Decoder(Shape).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class Present:
    """A planner that is of no other use, and what is around it."""

    def __init__(
        self,
        planner: Planner,
        now_ms: int,
        on_run: Callable[[Gang, NoteOpened], None] = lambda _gang, _note: None,
    ) -> None:
        """`on_run` is called for each run of a gang with a limit: when it began, or changed."""
        self.now_ms = now_ms
        self.state = planner.become_forecast()
        #: When gangs were placed first since the beginning, by gang id.
        self.starts: dict[str, int] = {}
        self._on_run = on_run
        self._stage = Stage(planner, planner.view.epoch, self._carry_out, _VERSION)
        #: Objects that were created again, or added.
        self._made = 0
        self._settle()

    def decide(self, now_ms: int) -> tuple[bool, int | None]:
        """As `Stage.decide`."""
        self.now_ms = now_ms
        return self._stage.decide(now_ms)

    def _settle(self) -> None:
        state = self.state
        for member in list(state.members.values()):
            pod = member.pod
            if pod.deleting:
                self._stage.remove(pod.uid)
            elif pod.node and pod.phase == "Pending" and pod.ours:
                self._stage.run_pod(pod, pod.node, self.now_ms)
        for seq, bound in list(state.open.items()):
            if bound.outcome is None:
                self._bind(bound.act, seq)
        self._evict_unanswered(state.evictions.items())
        self._evict_unanswered(state.preemptions.logged.items())
        for gang in state.gangs.gangs.values():
            if gang.history.notes.run is not None:
                self._on_run(gang, gang.history.notes.run)

    def _evict_unanswered(
        self, evictions: "Iterable[tuple[int, OpenEviction | Preemption]]"
    ) -> None:
        for seq, eviction in list(evictions):
            if eviction.outcome is None:
                self._evict(eviction.act, seq)

    # ------------------------------------------------- what the planner decides

    def _carry_out(self, record: Act | Note) -> None:
        seq = self._stage.decision_seq
        if isinstance(record, GangDecision):
            self.starts.setdefault(record.gang_id, self.now_ms)
            self._bind(record, seq)
        elif isinstance(record, EvictionDecision):
            self._evict(record, seq)
        elif isinstance(record, NoteOpened) and record.kind == "run":
            gang = self.state.gangs.find(record.gang_id)
            if gang is not None:
                self._on_run(gang, record)

    def _bind(self, decision: GangDecision, seq: int) -> None:
        for binding in decision.bindings:
            member = self.state.members.get(binding.uid)
            if member is not None and not member.pod.node and not member.pod.deleting:
                self._stage.run_pod(member.pod, binding.node, self.now_ms)
        self._stage.answer(decision, seq)

    def _evict(self, decision: EvictionDecision, seq: int) -> None:
        """Its pods are gone. Controllers create them again, unless their gang is at its limit."""
        for victim in decision.victims:
            member = self.state.members.get(victim.uid)
            if member is None:
                continue
            self._stage.remove(member.pod.uid)
            if decision.reason != PendingReason.RUN_LIMIT and member.pod.owner is not None:
                self._stage.put(self._again(member.pod))
        self._stage.answer(decision, seq)

    def _again(self, pod: Pod, **changed: Any) -> Pod:
        """The pod as its controller creates it again."""
        self._made += 1
        fresh: dict[str, Any] = {"node": "", "phase": "Pending", "deleting": False}
        instants = {"scheduled_ms": 0, "started_ms": 0, "decision_seq": 0}
        uid = f"{pod.uid}~{self._made}"
        return msgspec.structs.replace(pod, uid=uid, **fresh, **instants, **changed)

    def _free_claims(self, uids: AbstractSet[str]) -> None:
        """Claims that were made for these pods are gone, and others of theirs have no devices."""
        for claim in self.state.reference_objects.resource_claims.values():
            if claim.owner_uid in uids:
                self._stage.remove_claim(claim.uid)
            elif claim.reserved_for and uids >= set(claim.reserved_for):
                nothing: dict[str, Any] = {"has_allocation": False, "node_affinity": None}
                lists = dict.fromkeys(("allocated", "shares", "reserved_for"), ())
                self._stage.put_claim(msgspec.structs.replace(claim, **nothing, **lists))

    # ------------------------------------------------------ what others change

    def end(self, gang: Gang) -> None:
        """The gang has succeeded: its pods are gone."""
        self._stage.remove(*gang.members, succeeded=True)
        if any(member.shape.device_keys for member in gang.members.values()):
            self._free_claims(gang.members.keys())

    def regroup(self, gang: Gang, **changed: Any) -> None:
        """The gang's group is changed."""
        if gang.group is not None:
            self._stage.put_group(msgspec.structs.replace(gang.group, **changed))

    def create_again(
        self, gang: Gang, reshape: Callable[[Shape], Shape] | None = None, **changed: Any
    ) -> None:
        """The gang is created again, just now, with another group or other shapes of its pods."""
        pods = [member.pod for member in gang.members.values()]
        self._stage.remove(*(pod.uid for pod in pods))
        if gang.group is not None:
            self._made += 1
            uid = f"{gang.group.uid}~{self._made}"
            again = {"uid": uid, "created_ms": self.now_ms, **changed}
            self._stage.remove_group(gang.group.uid)
            self._stage.put_group(msgspec.structs.replace(gang.group, **again))
        for pod in pods:
            shape = pod.shape if reshape is None else _encode(reshape(_decode_shape(pod.shape)))
            self._stage.put(self._again(pod, shape=shape, created_ms=self.now_ms))

    def add_nodes(self, like: Node, count: int) -> None:
        """So many nodes like this one have come."""
        for _ in range(count):
            self._made += 1
            name = f"{like.name}~{self._made}"
            labels = tuple((key, name if key == _HOSTNAME else value) for key, value in like.labels)
            self._stage.put_node(msgspec.structs.replace(like, uid=name, name=name, labels=labels))

    # ------------------------------------------------------------------ reading

    def nodes(self) -> Iterator[Node]:
        """All nodes."""
        return (node for node in self.state.nodes.objects if node is not None)

    def shapes_of(self, gang: Gang) -> list[Shape]:
        """The distinct shapes of its pods."""
        return [_decode_shape(shape) for shape in {m.pod.shape for m in gang.members.values()}]
