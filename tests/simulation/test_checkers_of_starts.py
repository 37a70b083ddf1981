"""Which starts the simulation's checkers take for mistakes."""

from collections.abc import Callable

import pytest

from shared.contracts import annotations, codec, subjects
from shared.contracts.decisions import GangStarted
from shared.kube.resources import PODS
from tests.simulation.checkers import Checkers, Watched
from tests.simulation.kube_server import Obj, stamp, with_
from tests.simulation.loop import Dice, SimLoop
from tests.simulation.truth import Truth
from tests.simulation.workload import Plan, Shape
from tests.simulation.world import World

FIRST_LOG, SECOND_LOG = "first", "second"
NEVER_COMPLETE = "counts as started, and was never complete"


class Scene:
    """A world with one gang of a ReplicaSet, which the test binds by hand."""

    def __init__(self, minimum: int, size: int) -> None:
        self.loop = SimLoop(Dice(1))
        self.world = World(
            self.loop, Shape(gangs=0), on_fault=lambda _: None, note=lambda _gang, _what: None
        )
        self.truth = Truth(lambda: self.loop.now_ms)
        self.truth.generations[subjects.DECISIONS] = FIRST_LOG
        self.checkers = Checkers(self.world, self.truth, disturbed=lambda: True)
        self.world.begin()
        plan = Plan(
            name="gang",
            arrives_ms=0,
            size=size,
            minimum=minimum,
            cpu_milli=500,
            runs_ms=60_000,
            group=None,
            owner="ReplicaSet",
        )
        self.world.lives.begin([plan])
        self.loop.run_for(1.0)
        self.life = self.world.lives.lives["gang"]

    def bind(self, slot: int) -> None:
        condition = {
            "type": "PodScheduled",
            "status": "True",
            "lastTransitionTime": stamp(self.loop.now_ms),
        }
        self.world.etcd.change(
            PODS,
            self._pod(slot),
            lambda now: with_(
                now,
                metadata={"annotations": {annotations.DECISION: f"{FIRST_LOG}/1"}},
                spec={"nodeName": f"node-{slot}"},
                status={"conditions": [condition]},
            ),
            by="test",
        )
        self.loop.run_for(1.0)

    def replace(self, slot: int) -> None:
        """The pod goes, and its controller makes another one."""
        self.world.etcd.remove(PODS, self._pod(slot), by="test")
        self.loop.run_for(2.0)

    def start(self, *, log: str) -> list[str]:
        """A planner notes in this log that the gang has started.

        Returns:
            What the checkers say to that.
        """
        if log != FIRST_LOG:
            self.truth.recreated(subjects.DECISIONS, log)
        gang_id = min(Watched(self.life).gang_ids)
        record = GangStarted(gang_id=gang_id, epoch=0, at_ms=0, attempt=0)
        subject = subjects.note(record.gang_id)
        payload = codec.encode(record)
        self.truth.appended(subjects.DECISIONS, log, 1, subject, payload)
        return [one.what for one in self.checkers.violations]

    def _pod(self, slot: int) -> Obj:
        pods = {pod["metadata"]["uid"]: pod for pod in self.world.etcd.all(PODS)}
        return pods[self.life.pods[slot]]


def unbound_member_made_again() -> Scene:
    """Seed 302: one of two is bound, the other one was refused, and is deleted by its user."""
    scene = Scene(2, 2)
    scene.bind(0)
    scene.replace(1)
    return scene


def bound_one_after_the_other() -> Scene:
    """Seed 283: a member failed before the last one of the gang's minimum was bound."""
    scene = Scene(3, 5)
    scene.bind(0)
    scene.bind(1)
    scene.replace(1)
    scene.bind(2)
    return scene


def gone_without_successor() -> Scene:
    """Seed 227 once: members were lost with their node, and not made again yet."""
    scene = Scene(3, 3)
    scene.bind(0)
    scene.bind(1)
    scene.life.gave_up = True
    scene.replace(1)
    return scene


IN_DOUBT = [unbound_member_made_again, bound_one_after_the_other, gone_without_successor]


@pytest.mark.parametrize("made", IN_DOUBT)
def test_a_gang_whose_log_is_lost_may_count_as_started_when_in_doubt(
    made: Callable[[], Scene],
) -> None:
    assert made().start(log=SECOND_LOG) == []


@pytest.mark.parametrize("made", IN_DOUBT)
def test_a_planner_that_has_the_log_is_in_no_doubt(made: Callable[[], Scene]) -> None:
    assert made().start(log=FIRST_LOG) == [NEVER_COMPLETE]


def test_a_member_that_waits_since_the_first_binding_leaves_no_doubt() -> None:
    scene = Scene(3, 3)
    scene.bind(0)
    scene.bind(1)
    scene.replace(1)
    assert scene.start(log=SECOND_LOG) == [NEVER_COMPLETE]
