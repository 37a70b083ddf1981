"""A refused bucket that what was freed cannot help is not looked at, and no other one is missed."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.allocation import gang_allocation
from services.gang_planner.core.allocation.batch import BatchPlacement, BatchRequest
from services.gang_planner.core.allocation.decision import FoundPlacement
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.placement.refusals import Shortfalls
from services.gang_planner.core.queueing.fair_share import UNLIMITED, Limit
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.needs import Shortfall
from shared.model.objects import Queue
from tests.services.gang_planner.core.losing import WORKER, running
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

_NODES = 4
_QUEUES = ("default", "strict")

#: (members, milli CPU each, queue, priority of the group's pods)
Waiting = tuple[int, int, str, int]


def full_scene(waiting: Sequence[Waiting]) -> Scene:
    """Nodes of 4 CPUs filled by pods of one CPU, and gangs that wait."""
    nodes = [
        make_node(f"n{at}", {"cpu": 4000, "memory": 8 << 30, "pods": 20}) for at in range(_NODES)
    ]
    scene = Scene(nodes)
    scene.put(
        Queue(
            uid="strict",
            dialect="volcano",
            name="strict",
            resource_version=1,
            dequeue_strategy="fifo",
        )
    )
    shape = make_shape({"cpu": 1000})
    for at in range(_NODES):
        name = f"old{at}"
        scene.put(make_group(name, 1), *make_pods(name, 4, shape, node=f"n{at}", phase="Running"))
    for at, (members, cpu, queue, priority) in enumerate(waiting):
        name = f"new{at:02d}"
        group = make_group(name, members, created_ms=at, queue=queue)
        scene.put(group, *make_pods(name, members, make_shape({"cpu": cpu}), priority=priority))
    scene.settle()
    return scene


def live(waiting: Sequence[Waiting], events: Sequence[tuple[str, int]]) -> list[bytes]:
    """What is decided while pods end, nodes come, and nodes are cordoned and opened again."""
    scene = full_scene(waiting)
    found: list[bytes] = []
    for number, (what, at) in enumerate(events):
        match what:
            case "end":
                left = [one for one in scene.pods.values() if one.node == f"n{at}"]
                scene.remove(*left[:1])
            case "node":
                scene.put(make_node(f"m{number}", {"cpu": 1000 + 500 * at, "pods": 9}))
            case _:
                changed = make_node(
                    f"n{at}",
                    {"cpu": 4000, "memory": 8 << 30, "pods": 20},
                    unschedulable=what == "cordon",
                    resource_version=2 + number,
                )
                scene.put(changed)
        for decision in scene.settle():
            found.append(msgspec.msgpack.encode(decision.bindings))
            scene.run(decision)
    return found


@given(
    st.lists(
        st.tuples(
            st.integers(1, 4),
            st.sampled_from((500, 900, 1000, 1700)),
            st.sampled_from(_QUEUES),
            st.integers(0, 1),
        ),
        min_size=1,
        max_size=8,
    ),
    st.lists(
        st.tuples(
            st.sampled_from(("end", "end", "end", "node", "cordon", "open")),
            st.integers(0, _NODES - 1),
        ),
        min_size=1,
        max_size=8,
    ),
)
@settings(deadline=None, max_examples=40)
def test_the_same_is_decided_as_by_looking_at_every_bucket(
    waiting: list[Waiting], events: list[tuple[str, int]]
) -> None:
    found = live(waiting, events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Shortfalls, "remains", _never)
        assert live(waiting, events) == found


def _never(shortfalls: Shortfalls, bucket: Bucket, shortfall: Shortfall) -> bool:
    del shortfalls, bucket, shortfall
    return False


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the gangs that were tried to be placed, by themselves or together with others."""
    tried: list[str] = []
    real, together = gang_allocation.find_placement, BatchPlacement.most

    def find_placement(
        work: CycleContext, gang: Gang, limit: Limit = UNLIMITED
    ) -> FoundPlacement | None:
        tried.append(gang.name)
        return real(work, gang, limit)

    def most(gathering: BatchPlacement, bucket: Bucket, request: BatchRequest) -> int:
        tried.append(bucket.entries[0][2].name)
        return together(gathering, bucket, request)

    monkeypatch.setattr(gang_allocation, "find_placement", find_placement)
    monkeypatch.setattr(BatchPlacement, "most", most)
    return tried


def test_only_gangs_that_the_freed_room_may_help_are_tried(attempts: list[str]) -> None:
    scene = full_scene([(2, 1000, "default", 0), (1, 1700, "default", 0), (1, 900, "default", 0)])
    attempts.clear()
    scene.remove(scene.pods["old0-worker-0"])
    decided = scene.settle()
    assert attempts == ["new02"]
    assert [one.gang for one in decided] == ["team/new02"]


def test_what_is_freed_bit_by_bit_adds_up(attempts: list[str]) -> None:
    scene = full_scene([(2, 1000, "default", 0)])
    attempts.clear()
    scene.remove(scene.pods["old0-worker-0"])
    assert scene.settle() == []
    assert attempts == []
    scene.remove(scene.pods["old3-worker-0"])
    assert [one.gang for one in scene.settle()] == ["team/new00"]


def test_the_equal_of_a_gang_that_took_held_room_is_looked_at() -> None:
    """Seed 164 of the simulation: what the first attempt of the other one had noted was taken for
    something known when the pass began, and the planner crashed.
    """
    scene = running()
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    for name, priority in (("first", 5), ("second", 0)):
        scene.put(make_group(name, 1), *make_pods(name, 1, WORKER, priority=priority))
    assert [one.gang for one in scene.settle()] == ["team/first"]
