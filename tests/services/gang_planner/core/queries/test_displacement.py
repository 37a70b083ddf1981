"""Which pods would it displace? The answer before a gang exists is what happens when it does."""

from collections import Counter
from typing import Any

import pytest

from shared.contracts.questions import FitAnswer, FitRequest
from shared.model.objects import PriorityClass, Queue
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.preemption.crowd import (
    QUARTER,
    WHOLE_GANGS,
    WHOLE_NODE,
    cluster,
    configured,
    evictions,
    running,
    submit,
)
from tests.services.gang_planner.core.scene import make_group, make_pods

RECLAIM = configured(
    "enqueue, allocate, reclaim, backfill",
    "name: gang, enablePreemptable: false, enableReclaimable: false",
    "  - name: proportion\n",
)


def ask(
    scene: LoggedScene, size: int, *, shape: bytes = WHOLE_NODE, group: Any = None, **pods: Any
) -> FitAnswer:
    question = FitRequest(
        group=make_group("new", size, **(group or {})),
        pods=tuple(make_pods("new", size, shape, **pods)),
    )
    return scene.planner.would_fit(question)


def displaced_by(scene: LoggedScene, size: int, **fields: Any) -> tuple[tuple[str, int], ...]:
    """The pods that are evicted when the gang is created indeed."""
    submit(scene, "new", size, **fields)
    scene.until_quiet()
    gangs = [victim.name.rpartition("-worker-")[0] for victim in evictions(scene)[0].victims]
    counts = Counter(f"team/tfjob/{name}" for name in gangs)
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def test_the_pods_named_as_victims_are_the_pods_that_are_evicted() -> None:
    scene = cluster(6)
    running(scene, "elastic", 3, minimum=1)
    running(scene, "single", 1)
    running(scene, "pair", 2, priority=5)
    answer = ask(scene, 3, priority=10)
    assert (answer.fits, answer.ever, answer.displaces_by) == (False, True, "preempt")
    assert answer.displaces == displaced_by(scene, 3, priority=10)
    assert answer.displaces == (("team/tfjob/elastic", 2), ("team/tfjob/single", 1))


def test_whole_gangs_are_named_where_an_action_takes_them() -> None:
    scene = cluster(4, configured("enqueue, allocate, preempt, gangpreempt"))
    running(scene, "whole", 4)
    answer = ask(scene, 1, priority=10)
    assert answer.displaces == displaced_by(scene, 1, priority=10) == (("team/tfjob/whole", 4),)


def test_a_queue_that_would_deserve_its_share_would_take_it_back() -> None:
    scene = cluster(4, RECLAIM)
    for name in ("rich", "poor"):
        scene.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1))
    running(scene, "all", 4, minimum=1, group={"queue": "rich"})
    answer = ask(scene, 2, group={"queue": "poor"})
    assert answer.displaces_by == "reclaim"
    assert (
        answer.displaces
        == displaced_by(scene, 2, group={"queue": "poor"})
        == (("team/tfjob/all", 2),)
    )


@pytest.mark.parametrize(
    ("conf", "fields"),
    [
        pytest.param(configured("enqueue, allocate"), {"priority": 10}, id="no action evicts"),
        pytest.param(WHOLE_GANGS, {"priority": 0}, id="of no higher priority"),
        pytest.param(
            WHOLE_GANGS, {"priority": 10, "preempts": False}, id="of a class that never preempts"
        ),
        pytest.param(
            WHOLE_GANGS, {"priority": 10, "group": {"queue": "no-such"}}, id="of an unknown queue"
        ),
    ],
)
def test_no_pod_would_be_evicted_for_a_gang(conf: str, fields: dict[str, Any]) -> None:
    scene = cluster(2, conf)
    running(scene, "low", 2, minimum=0)
    answer = ask(scene, 1, **fields)
    assert (answer.fits, answer.ever, answer.displaces) == (False, True, ())


def test_a_template_has_the_priority_of_the_class_that_it_names() -> None:
    scene = cluster(1)
    running(scene, "low", 1)
    scene.put(PriorityClass(uid="p", name="urgent", resource_version=1, value=100))
    assert ask(scene, 1, priority_class="urgent").displaces == (("team/tfjob/low", 1),)
    assert ask(scene, 1, group={"priority_class": "urgent"}).displaces == (("team/tfjob/low", 1),)


def test_a_gang_that_fits_displaces_no_pod() -> None:
    scene = cluster(2)
    running(scene, "low", 1)
    assert ask(scene, 1, priority=10).displaces == ()


def test_a_question_about_displacing_leaves_no_trace() -> None:
    scene = cluster(4, RECLAIM)
    for name in ("rich", "poor"):
        scene.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1))
    running(scene, "all", 16, minimum=1, shape=QUARTER, group={"queue": "rich"})
    state = scene.state

    def books() -> list[Any]:
        return [
            state.node_capacity.free.cells.tolist(),
            state.node_capacity.freed,
            len(state.shapes.entries),
            [
                (name, +Counter(one.used), dict(one.deserved), dict(one.demand))
                for name, one in state.queues.entries.items()
            ],
        ]

    before = books()
    assert ask(scene, 2, group={"queue": "poor"}).displaces
    assert books() == before
    validate(scene.planner)
    assert scene.settle() == []
