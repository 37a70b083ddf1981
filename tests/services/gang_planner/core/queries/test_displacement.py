"""Whom would it displace? What is answered before a gang exists is what happens when it does."""

from collections import Counter
from typing import Any

import pytest

from shared.contracts.questions import FitAnswer, FitRequest
from shared.model.objects import PriorityClass, Queue
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
from tests.services.gang_planner.core.story import Story

RECLAIM = configured(
    "enqueue, allocate, reclaim, backfill",
    "name: gang, enablePreemptable: false, enableReclaimable: false",
    "  - name: proportion\n",
)


def ask(
    story: Story, size: int, *, shape: bytes = WHOLE_NODE, group: Any = None, **pods: Any
) -> FitAnswer:
    question = FitRequest(
        group=make_group("new", size, **(group or {})),
        pods=tuple(make_pods("new", size, shape, **pods)),
    )
    return story.planner.would_fit(question)


def displaced_by(story: Story, size: int, **fields: Any) -> tuple[tuple[str, int], ...]:
    """Who has to go when the gang is created indeed."""
    submit(story, "new", size, **fields)
    story.until_quiet()
    gangs = [victim.name.rpartition("-worker-")[0] for victim in evictions(story)[0].victims]
    counts = Counter(f"team/{name}" for name in gangs)
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def test_those_who_would_go_are_those_who_go() -> None:
    story = cluster(6)
    running(story, "elastic", 3, minimum=1)
    running(story, "single", 1)
    running(story, "pair", 2, priority=5)
    answer = ask(story, 3, priority=10)
    assert (answer.fits, answer.ever, answer.displaces_by) == (False, True, "preempt")
    assert answer.displaces == displaced_by(story, 3, priority=10)
    assert answer.displaces == (("team/elastic", 2), ("team/single", 1))


def test_whole_gangs_are_named_where_an_action_takes_them() -> None:
    story = cluster(4, configured("enqueue, allocate, preempt, gangpreempt"))
    running(story, "whole", 4)
    answer = ask(story, 1, priority=10)
    assert answer.displaces == displaced_by(story, 1, priority=10) == (("team/whole", 4),)


def test_a_queue_that_would_deserve_its_share_would_take_it_back() -> None:
    story = cluster(4, RECLAIM)
    for name in ("rich", "poor"):
        story.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1))
    running(story, "all", 4, minimum=1, group={"queue": "rich"})
    answer = ask(story, 2, group={"queue": "poor"})
    assert answer.displaces_by == "reclaim"
    assert answer.displaces == displaced_by(story, 2, group={"queue": "poor"}) == (("team/all", 2),)


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
def test_nobody_would_go_for_a_gang(conf: str, fields: dict[str, Any]) -> None:
    story = cluster(2, conf)
    running(story, "low", 2, minimum=0)
    answer = ask(story, 1, **fields)
    assert (answer.fits, answer.ever, answer.displaces) == (False, True, ())


def test_a_template_has_the_priority_of_the_class_that_it_names() -> None:
    story = cluster(1)
    running(story, "low", 1)
    story.put(PriorityClass(uid="p", name="urgent", resource_version=1, value=100))
    assert ask(story, 1, priority_class="urgent").displaces == (("team/low", 1),)
    assert ask(story, 1, group={"priority_class": "urgent"}).displaces == (("team/low", 1),)


def test_a_gang_that_fits_displaces_nobody() -> None:
    story = cluster(2)
    running(story, "low", 1)
    assert ask(story, 1, priority=10).displaces == ()


def test_a_question_about_displacing_leaves_no_trace() -> None:
    story = cluster(4, RECLAIM)
    for name in ("rich", "poor"):
        story.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1))
    running(story, "all", 16, minimum=1, shape=QUARTER, group={"queue": "rich"})
    state = story.planner._state

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
    assert ask(story, 2, group={"queue": "poor"}).displaces
    assert books() == before
    story.planner.validate()
    assert story.settle() == []
