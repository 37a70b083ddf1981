"""A planner whose decisions are only observed, while another scheduler binds pod by pod.

The planner knows nothing of being observed; its invariants are checked after every cycle
(`Scene.step`), and no recount may fail, whatever the other scheduler does.
"""

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from services.observer.core.assumed_decisions import answer
from services.observer.state import ObserverState
from shared.contracts.decisions import EvictionDecision, GangDecision
from shared.contracts.observing import GangObserved
from shared.model.objects import Node, Pod
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.snapshots import snapshot_of

STAND_MS = 10_000
CPU = make_shape({"cpu": 1000})


class Observed(Scene):
    """A scene with an observer instead of binders; nothing is carried out."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.observer = ObserverState(stand_ms=STAND_MS, gone_max=100)
        self._read = 0
        self.proofs: list[str] = []
        nodes = list(nodes)
        super().__init__(nodes)
        page = snapshot_of(nodes, at_ms=self.now_ms, epoch=self.epoch, cluster_seq=self.cluster_seq)
        self.observer.replace([page])

    @override
    def apply(self, record: Any) -> None:
        super().apply(record)
        self.observer.apply(self.cluster_seq, record)

    def passes(self, seconds: float) -> None:
        """Time passes, and all do what is due; in steps, as timers would wake them."""
        until_ms = self.now_ms + int(seconds * 1000)
        self._turn()
        while self.now_ms < until_ms:
            self.now_ms = min(self.now_ms + 2_000, until_ms)
            self._turn()

    def row(self, gang: str) -> GangObserved:
        found = self.observer.build_report(self.now_ms).gangs
        return next(one for one in found if one.gang == f"team/{gang}")

    def free(self, node: str) -> int:
        there = sum(1 for pod in self.pods.values() if pod.node == node)
        return 4 - there

    def _turn(self) -> None:
        self.settle()
        for seq, one in self.records[self._read :]:
            if isinstance(one, GangDecision | EvictionDecision):
                found = self.observer.decided(seq, one, self.now_ms)
                self.proofs += [found.proof] if found is not None else []
                assert found is None or found.proof != "failed", found
        self._read = len(self.records)
        for assumed in self.observer.assumed.over(self.now_ms):
            self.outcome_seq += 1
            outcome = answer(
                assumed,
                self.observer.cluster_state,
                observer="o",
                generation="",
                now_ms=self.now_ms,
            )
            self.planner.apply_outcome(self.outcome_seq, outcome)
            self.observer.assumed.drop(assumed.seq)
        self.settle()


def nodes(count: int = 2) -> list[Node]:
    return [make_node(f"n{index}", {"cpu": 4000, "pods": 110}) for index in range(count)]


def appear(scene: Observed, gang: str, members: int) -> list[Pod]:
    pods = make_pods(gang, members, CPU)
    scene.put(make_group(gang, members), *pods)
    return pods


def test_a_gang_that_the_other_scheduler_leaves_is_decided_repeatedly_and_stays_pending() -> None:
    scene = Observed(nodes(1))
    appear(scene, "train", 3)
    scene.passes(300)
    assert len(scene.decisions) > 4
    assert scene.verdict("train").phase in {"Pending", "Inqueue", "Starting"}
    assert scene.row("train").proved == len(scene.decisions)
    assert scene.row("train").decided_ms == scene.decisions[0][1].cycle.now_ms


def test_room_of_a_standing_decision_is_taken_and_is_given_back() -> None:
    scene = Observed(nodes(1))
    appear(scene, "first", 3)
    scene.passes(1)
    appear(scene, "second", 3)
    scene.passes(5)
    assert [one.gang for _, one in scene.decisions] == ["team/first"]
    scene.passes(10)
    assert "team/second" in [one.gang for _, one in scene.decisions], "the first was given back"


def test_pods_bound_by_the_other_scheduler_replace_the_assumed_ones() -> None:
    scene = Observed(nodes())
    (pod, other) = appear(scene, "train", 2)
    scene.passes(1)
    ((_, decision),) = scene.decisions
    away = "n1" if decision.bindings[0].node == "n0" else "n0"
    scene.change(pod.uid, node=away)
    scene.change(other.uid, node=away)
    scene.passes(1)
    assert scene.planner.open_decisions == 0
    assert len(scene.observer.assumed) == 0
    assert scene.verdict("train").phase == "Running"
    appear(scene, "next", 6)
    scene.passes(1)
    assert len(scene.decisions[-1][1].bindings) == 6, "all that is left is free"


def test_a_gang_that_the_other_scheduler_binds_in_part_is_released_on_paper_only() -> None:
    scene = Observed(nodes(1))
    first, *_ = appear(scene, "train", 3)
    scene.passes(1)
    scene.change(first.uid, node="n0")
    scene.passes(90)
    assert scene.row("train").release.startswith("RepairDeadline")
    releases = [one for _, one in scene.records if isinstance(one, EvictionDecision)]
    assert len(releases) == 1, "it is not asked for every ten seconds"
    assert scene.row("train").partial_since_ms


ACTS = st.lists(
    st.tuples(
        st.sampled_from(("appear", "bind", "bind", "bind", "run", "end", "delete", "wait")),
        st.integers(0, 11),
        st.integers(0, 11),
    ),
    min_size=5,
    max_size=40,
)


@given(ACTS)
@settings(max_examples=20)
def test_no_recount_fails_and_no_invariant_breaks_whatever_the_other_scheduler_does(
    acts: list[tuple[str, int, int]],
) -> None:
    scene = Observed(nodes(3))
    gangs = 0
    for act, which, number in acts:
        waiting = [pod for pod in scene.pods.values() if not pod.node]
        bound = [pod for pod in scene.pods.values() if pod.node]
        match act:
            case "appear" if gangs < 6:
                gangs += 1
                appear(scene, f"g{gangs}", 1 + number % 5)
            case "bind" if waiting and scene.free(f"n{number % 3}") > 0:
                scene.change(waiting[which % len(waiting)].uid, node=f"n{number % 3}")
            case "run" if bound:
                scene.change(bound[which % len(bound)].uid, phase="Running")
            case "end" if bound:
                scene.change(bound[which % len(bound)].uid, phase="Succeeded")
            case "delete" if scene.pods:
                scene.remove(list(scene.pods.values())[which % len(scene.pods)])
            case _:
                pass
        scene.passes(number % 3 * 6)
    scene.passes(2 * STAND_MS / 1000)
    assert scene.observer.assumed.over(scene.now_ms) == []
