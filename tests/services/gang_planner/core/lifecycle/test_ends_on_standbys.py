"""A standby that follows CLUSTER and DECISIONS knows where a run of a gang has ended."""

from typing import Any

from typing_extensions import override

from services.gang_planner.core.cycle import Step
from services.gang_planner.core.planner import Planner
from shared.contracts.decisions import GangDecision
from shared.model.objects import Node, Pod
from tests.services.gang_planner.core.lifecycle.gang_lives import FULL
from tests.services.gang_planner.core.lifecycle.test_ends import JOB, clean, end, running
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods


class Followed(LoggedScene):
    """A scene with a standby, which applies every record."""

    def __init__(self, nodes: list[Node]) -> None:
        self.standby: Planner | None = None
        super().__init__(nodes)
        self.standby = Planner(self.conf)
        leader, self.planner = self.planner, self.standby
        self.load_present_snapshot()
        self.planner = leader

    @override
    def apply(self, record: Any) -> None:
        super().apply(record)
        if self.standby is not None:
            self.standby.apply_cluster(self.cluster_seq, record)

    @override
    def step(self, *, after_ms: int = 0, fresh: bool = True) -> Step:
        before = len(self.records)
        step = super().step(after_ms=after_ms, fresh=fresh)
        if self.standby is not None:
            for seq, record in self.records[before:]:
                self.standby.apply_decision(seq, record)
        return step

    def let_standby_lead(self) -> None:
        """The leader dies."""
        assert self.standby is not None
        self.planner, self.standby = self.standby, None
        for seq, outcome in self.outcomes:
            self.planner.apply_outcome(seq, outcome)
        self.decision_seq += 1
        self.take_over(self.planner)


def prove_repair(scene: Followed, lost: list[Pod]) -> None:
    """These pods are made again and placed together, the leader dies when one of them is bound, and
    the standby repairs the gang.
    """
    again = scene.make_again(lost)
    scene.until_quiet(within_ms=61_000)
    decision = scene.decisions[-1][1]
    assert isinstance(decision, GangDecision)
    assert {one.uid for one in decision.bindings} == {pod.uid for pod in again}
    first = decision.bindings[0]
    scene.change(first.uid, node=first.node)
    scene.let_standby_lead()
    scene.until_quiet(within_ms=2_000)
    assert ("opened", "QuorumNotPlaced") in scene.notes("repair")


def test_a_standby_that_takes_over_while_a_new_run_starts_repairs_it() -> None:
    """The log says that the gang had started, but that was the run before."""
    scene = Followed([make_node(f"n{i}") for i in range(3)])
    pods = running(scene, make_group("a", 2), make_pods("a", 2, FULL))
    end(scene, *pods)
    clean(scene, *pods)
    prove_repair(scene, pods)


def test_a_standby_that_takes_over_while_a_resumed_job_starts_repairs_it() -> None:
    """The log says that the gang had started, but then its pods were deleted but for one that had
    succeeded.
    """
    scene = Followed([make_node(f"n{i}") for i in range(3)])
    pods = running(scene, make_group("a", 3), make_pods("a", 3, FULL, owner=JOB))
    end(scene, pods[0])
    clean(scene, *pods[1:])
    prove_repair(scene, pods[1:])


def test_a_standby_that_saw_the_next_run_begin_takes_nothing_from_an_older_verdict() -> None:
    """The leader has died before it said that the last run is over."""
    scene = Followed([make_node(f"n{i}") for i in range(3)])
    pods = running(scene, make_group("a", 3), make_pods("a", 3, FULL))
    end(scene, *pods[:2])
    clean(scene, *pods[:2])
    scene.until_quiet(within_ms=2_000)
    assert scene.verdict("a").succeeded == 2
    scene.remove(scene.pods[pods[2].uid])
    scene.put(make_node("n0", unschedulable=True, resource_version=2))
    scene.make_again(pods)
    for verdict in scene.verdicts.values():
        assert scene.standby is not None
        scene.standby.apply_verdict(verdict)
    scene.let_standby_lead()
    scene.until_quiet(within_ms=61_000)
    scene.carry_out()
    assert scene.bound("a") == 0
