"""A scene with a binder, kubelets and controllers that carry out what the planner decides, and a
log from which a planner can be started again.

Nothing happens by itself: tests call `carry_out`, `make_again` and `restart` where it matters.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from typing_extensions import override

from services.gang_planner.core.cycle import Step
from services.gang_planner.core.planner import Planner
from shared.contracts.decisions import (
    Act,
    Binding,
    Checkpoint,
    EpochOpened,
    EvictionDecision,
    GangDecision,
    NoteClosed,
    NoteOpened,
)
from shared.contracts.outcomes import Member, Outcome
from shared.contracts.verdicts import Condition
from shared.model.objects import Node, Pod
from tests.services.gang_planner.core.scene import Scene
from tests.support.snapshots import snapshot_of

WORDS = 'admission webhook "policy" denied the request: not this one'


class LoggedScene(Scene):
    """Everything that was decided is remembered, and what was carried out of it."""

    def __init__(self, nodes: Iterable[Node] = (), *, conf: str = "") -> None:
        self.objects: dict[str, Any] = {}
        self.outcomes: list[tuple[int, Outcome]] = []
        self.done: set[int] = set()
        #: The epochs that planners opened after the first one, by sequence.
        self.epochs: list[tuple[int, EpochOpened]] = []
        #: Whether planners that take over derive the ids of owners' gangs by the present rule.
        self.namespaced_ids = False
        #: Refuses a binding, by a policy.
        self.refuses: Callable[[Binding], bool] = lambda _: False
        nodes = list(nodes)
        super().__init__(nodes, conf=conf)
        self.objects.update({node.uid: node for node in nodes})
        self.pages: list[Checkpoint] = []
        self.conf = self.planner.configuration
        self._serial = 0

    @override
    def put(self, *objects: Any) -> None:
        """As in a scene; objects are remembered for the next snapshot."""
        self.objects.update({one.uid: one for one in objects if not isinstance(one, Pod)})
        super().put(*objects)

    @override
    def remove(self, *objects: Any) -> None:
        """As in a scene."""
        for one in objects:
            self.objects.pop(one.uid, None)
        super().remove(*objects)

    # ------------------------------------------------------------------ the log

    @property
    def acts(self) -> list[tuple[int, Act]]:
        """All decisions."""
        return [
            (seq, one)
            for seq, one in self.records
            if isinstance(one, GangDecision | EvictionDecision)
        ]

    @property
    def releases(self) -> list[EvictionDecision]:
        """All releases decided."""
        return [one for _, one in self.acts if isinstance(one, EvictionDecision)]

    def notes(self, kind: str) -> list[tuple[str, str]]:
        """What became of notes of a kind: ("opened" or "closed", reason)."""
        return [
            ("opened" if isinstance(one, NoteOpened) else "closed", one.reason)
            for _, one in self.records
            if isinstance(one, NoteOpened | NoteClosed) and one.kind == kind
        ]

    def condition(self, gang: str, kind: str) -> Condition | None:
        """A condition of the gang's last verdict, while it is True."""
        found = {one.type: one for one in self.verdict(gang).conditions}.get(kind)
        return found if found is not None and found.status == "True" else None

    def restart(
        self,
        *,
        checkpoint: bool = False,
        snapshot_first: bool = False,
        outcomes_first: bool = False,
        verdicts: bool = False,
    ) -> None:
        """The planner dies; another one starts from a snapshot, the log and the outcomes, or what
        of them is behind the checkpoint after the last cycle. The snapshot or the outcomes may come
        before the log. With `verdicts` it reads the published ones before.
        """
        pages = self.pages if checkpoint else []
        planner = Planner(self.conf)
        if verdicts:
            for verdict in self.verdicts.values():
                planner.apply_verdict(verdict)
        if snapshot_first:
            self.planner = planner
            self.load_present_snapshot()
        planner.restore(pages)
        behind = pages[0].up_to if pages else 0
        read = pages[0].outcomes_seq if pages else 0
        outcomes = [(seq, outcome) for seq, outcome in self.outcomes if seq > read]
        if outcomes_first:
            _apply_outcomes(planner, outcomes)
        for seq, record in self.records:
            if seq > behind:
                planner.apply_decision(seq, record)
        if not snapshot_first:
            self.planner = planner
            self.load_present_snapshot()
        if not outcomes_first:
            _apply_outcomes(planner, outcomes)
        self.decision_seq += 1
        self.take_over(planner)

    def take_over(self, planner: Planner) -> None:
        """This planner opens an epoch; `decision_seq` is the sequence of its record."""
        epoch = EpochOpened(
            epoch=self.decision_seq,
            planner="next",
            at_ms=self.now_ms,
            cluster_epoch=1,
            cluster_seq=planner.view.cluster_seq,
            snapshot_seq=planner.view.snapshot_seq,
            namespaced_ids=self.namespaced_ids,
        )
        self.epochs.append((self.decision_seq, epoch))
        planner.apply_decision(self.decision_seq, epoch)
        planner.lead(self.decision_seq)

    def load_present_snapshot(self) -> None:
        """Load a snapshot of everything that is there."""
        self.cluster_seq += 1
        page = snapshot_of(
            [*self.objects.values(), *self.pods.values()],
            at_ms=self.now_ms,
            epoch=self.epoch,
            cluster_seq=self.cluster_seq,
        )
        self.planner.load_snapshot([page])

    # --------------------------------------------------------- carrying it out

    def carry_out(self, *, phase: str = "Pending") -> None:
        """A binder carries out every decision that it has not yet, and CLUSTER shows it."""
        for seq, act in self.acts:
            if seq in self.done:
                continue
            self.done.add(seq)
            if isinstance(act, GangDecision):
                self.answer(seq, act, *self._bind(act, phase))
            else:
                self.answer(seq, act, (), evicted=len(act.victims))
                for victim in act.victims:
                    if victim.uid in self.pods:
                        self.remove(self.pods[victim.uid])

    def answer(
        self,
        seq: int,
        act: Act,
        members: Iterable[Member] = (),
        reason: str = "",
        *,
        evicted: int = 0,
        delivered: int = 1,
    ) -> None:
        """A binder publishes its outcome."""
        listed = tuple(members)
        self.outcome_seq += 1
        outcome = Outcome(
            gang_id=act.gang_id,
            decision_seq=seq,
            epoch=act.epoch,
            binder="binder-0",
            delivered=delivered,
            reason=reason,
            bound=len(act.bindings) - len(listed),
            evicted=evicted,
            members=listed,
        )
        self.outcomes.append((self.outcome_seq, outcome))
        self.planner.apply_outcome(self.outcome_seq, outcome)

    def _bind(self, decision: GangDecision, phase: str) -> tuple[list[Member], str]:
        found: list[Member] = []
        refused = [one for one in decision.bindings if self.refuses(one)]
        if decision.preflight and refused:
            for one in decision.bindings:
                if one in refused:
                    found.append(self.refusal(one))
                else:
                    found.append(Member(uid=one.uid, node=one.node, result="skipped"))
            return found, "PreflightFailed"
        for one in decision.bindings:
            if one in refused:
                found.append(self.refusal(one))
            elif one.uid not in self.pods:
                found.append(Member(uid=one.uid, node=one.node, result="gone", code=404))
            else:
                self.change(one.uid, node=one.node, phase=phase)
        return found, ""

    @staticmethod
    def refusal(binding: Binding) -> Member:
        """What an outcome says of a member that a policy refused."""
        return Member(uid=binding.uid, node=binding.node, result="refused", code=403, message=WORDS)

    def make_again(self, pods: Iterable[Pod]) -> list[Pod]:
        """The controller of these pods makes those again that are gone, under their old names."""
        made: list[Pod] = []
        living = {(pod.namespace, pod.name) for pod in self.pods.values()}
        for pod in pods:
            if (pod.namespace, pod.name) in living:
                continue
            self._serial += 1
            made.append(
                msgspec.structs.replace(pod, uid=f"{pod.name}-again-{self._serial}", node="")
            )
        self.put(*made)
        return made

    def until_quiet(self, *, within_ms: int = 0) -> None:
        """Cycles, each where the last one asked for it, until nothing is asked for in this time."""
        end_ms = self.now_ms + within_ms
        self.step()
        for _ in range(1_000):
            if self.wakeup_ms is None or self.wakeup_ms > end_ms:
                self.now_ms = end_ms
                return
            self.step(after_ms=max(self.wakeup_ms - self.now_ms, 0))
        raise AssertionError("the planner wants to be woken again and again")

    def bound(self, gang: str) -> int:
        """Members that have a node."""
        return sum(1 for pod in self.pods.values() if pod.group_name == gang and pod.node)

    @override
    def step(self, *, after_ms: int = 0, fresh: bool = True) -> Step:
        """As in a scene; a checkpoint is kept of what is known then."""
        step = super().step(after_ms=after_ms, fresh=fresh)
        self.pages = self.planner.checkpoint(self.outcome_seq)
        return step


def _apply_outcomes(planner: Planner, outcomes: Iterable[tuple[int, Outcome]]) -> None:
    for seq, outcome in outcomes:
        planner.apply_outcome(seq, outcome)
