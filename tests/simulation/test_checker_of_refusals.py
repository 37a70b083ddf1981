"""The checker of refusals judges a decision by what its cycle had read, and by nothing later."""

import pytest

from shared.contracts import annotations, codec, subjects
from shared.contracts.cluster import Gone, PodChanges, Synced
from shared.contracts.decisions import Binding, Cycle, EpochOpened, GangDecision
from shared.contracts.outcomes import Member, Outcome
from shared.kube.resources import PODGROUPS_VOLCANO, PODS
from tests.simulation.checkers import Checkers
from tests.simulation.kube_server import with_
from tests.simulation.lives import NAMESPACE, Life
from tests.simulation.loop import Dice, SimLoop
from tests.simulation.truth import Truth
from tests.simulation.workload import Plan, Shape
from tests.simulation.world import World

REFUSED, REMAINING, REMOVED = range(3)
#: Sequences in CLUSTER: the watcher's epoch; the deletion of the removed member.
SYNCED, DELETION = 1, 2
#: Sequences in DECISIONS: the planner's epoch; the refused decision; the next one.
EPOCH, FIRST, SECOND = 1, 2, 3


class Scene:
    """A gang of three that needs two, of which a policy refuses one for ever."""

    def __init__(self) -> None:
        self.loop = SimLoop(Dice(1))
        self.world = World(
            self.loop, Shape(gangs=0), on_fault=lambda _: None, note=lambda _gang, _what: None
        )
        self.truth = Truth(lambda: self.loop.now_ms)
        self.checkers = Checkers(self.world, self.truth, disturbed=lambda: True)
        self.world.begin()
        plan = Plan(
            name="gang",
            arrives_ms=0,
            size=3,
            minimum=2,
            cpu_milli=500,
            runs_ms=60_000,
            group=PODGROUPS_VOLCANO,
            owner="ReplicaSet",
            poison=REFUSED,
            mishaps=(("scaled_down", 1_000),),
        )
        self.world.lives.begin([plan])
        self.loop.run_for(0.5)
        self.life: Life = self.world.lives.lives["gang"]
        self.append(subjects.CLUSTER, SYNCED, Synced(epoch=SYNCED, at_ms=1, watcher="w"))
        opened = EpochOpened(epoch=EPOCH, planner="p", at_ms=1, cluster_epoch=SYNCED)
        self.append(subjects.DECISIONS, EPOCH, opened)

    def append(self, stream: str, seq: int, record: object, subject: str = "") -> None:
        self.truth.appended(stream, stream, seq, subject, codec.encode(record))

    def decide(self, seq: int, slot: int, *, cluster_seq: int, outcomes_seq: int) -> None:
        cycle = Cycle(
            cluster_seq=cluster_seq, outcomes_seq=outcomes_seq, now_ms=1, configuration=""
        )
        self.append(
            subjects.DECISIONS,
            seq,
            GangDecision(
                gang_id="gang",
                gang="work/gang",
                dialect="volcano",
                epoch=EPOCH,
                attempt=seq - EPOCH,
                bindings=(self.binding(slot),),
                quorum=1,
                trace_id="",
                first_seen_ms=1,
                cycle=cycle,
            ),
        )

    def binding(self, slot: int) -> Binding:
        uid = self.life.pods[slot]
        (name,) = [
            one["metadata"]["name"]
            for one in self.world.etcd.all(PODS)
            if one["metadata"]["uid"] == uid
        ]
        return Binding(uid=uid, namespace=NAMESPACE, name=name, node="node-0")

    def refuse(self) -> None:
        """The API server refuses the member of the first decision."""
        member = Member(uid=self.life.pods[REFUSED], node="node-0", result="refused", code=403)
        outcome = Outcome(
            gang_id="gang",
            decision_seq=FIRST,
            epoch=EPOCH,
            binder="b",
            delivered=1,
            members=(member,),
        )
        self.append(subjects.OUTCOMES, 1, outcome, subjects.outcome("gang", FIRST))

    def bind(self, seq: int, slot: int) -> None:
        """A binder binds what the decision says."""
        binding = self.binding(slot)
        pod = self.world.etcd.get(PODS, NAMESPACE, binding.name)
        assert pod is not None
        notes = {annotations.DECISION: f"{subjects.DECISIONS}/{seq}"}
        self.world.etcd.change(
            PODS,
            pod,
            lambda now: with_(
                now, spec={"nodeName": binding.node}, metadata={"annotations": notes}
            ),
            by="binder-0",
            verb="bind",
        )


@pytest.mark.parametrize("read", [False, True], ids=["not yet read", "read"])
def test_a_gang_is_smaller_once_the_cycle_has_read_the_deletion_of_its_member(read: bool) -> None:
    """Seed 330: a decision was made in the instant in which its gang was scaled down. The refused
    member was not needed in what the cycle had read.
    """
    scene = Scene()
    removed = scene.life.pods[REMOVED]
    scene.decide(FIRST, REFUSED, cluster_seq=SYNCED, outcomes_seq=0)
    scene.refuse()
    scene.loop.run_for(1.0)
    assert scene.life.size == 2
    gone = PodChanges(epoch=SYNCED, at_ms=1, removed=(Gone(uid=removed, resource_version=9),))
    scene.append(subjects.CLUSTER, DELETION, gone)
    scene.decide(SECOND, REMAINING, cluster_seq=DELETION if read else SYNCED, outcomes_seq=1)
    scene.bind(SECOND, REMAINING)
    expected = [f"decision {SECOND} binds again after {FIRST} was refused finally"] if read else []
    assert [one.what for one in scene.checkers.violations] == expected
