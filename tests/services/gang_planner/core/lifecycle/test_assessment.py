"""What is not worked out again for each gang is what working it out would have found."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.placement.session import BINDINGS_MAX
from services.gang_planner.core.queueing.need import need_of
from services.gang_planner.core.state import in_flight
from services.gang_planner.core.verdicts.book import Book
from shared.model.objects import Queue
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

SMALL, LARGE = make_shape({"cpu": 500}), make_shape({"cpu": 1500})


def live(plan: list[tuple[int, int, bool]]) -> Iterator[tuple[Any, ...]]:
    """Gangs of (members, members that exist, large) come one after the other and are bound; what
    every cycle decided, noted and published.
    """
    scene = LoggedScene(make_node(f"n{at}", {"cpu": 4000, "pods": 8}) for at in range(3))
    scene.refuses = lambda binding: binding.name == "g1-worker-0"
    for index, (minimum, members, large) in enumerate(plan):
        shape = LARGE if large else SMALL
        scene.put(make_group(f"g{index}", minimum), *make_pods(f"g{index}", members, shape))
        for after_ms in (0, 500):
            step = scene.step(after_ms=after_ms)
            phases = {
                name: count for name, count in scene.planner.gangs_by_phase().items() if count
            }
            yield step.decisions, step.notes, step.verdicts, step.next_wakeup_ms, phases
        if index % 2:
            scene.carry_out(phase="Running")


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4), st.booleans()), max_size=8))
@settings(deadline=None, max_examples=40)
def test_a_gang_decided_whole_is_reported_as_if_it_were_assessed_again(
    plan: list[tuple[int, int, bool]],
) -> None:
    found = list(live(plan))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_flight, "_all_begins", lambda _: False)
        assert found == list(live(plan))


def test_equal_gangs_share_what_they_need() -> None:
    scene = LoggedScene([make_node("n0", {"cpu": 100, "pods": 8})])
    for name in ("a", "b"):
        scene.put(make_group(name, 2), *make_pods(name, 2, SMALL))
    scene.step()
    state = scene.state
    first, second = state.gangs.gangs.values()
    assert first.bucket is not None
    assert first.bucket is second.bucket
    assert need_of(state, second) is first.bucket.need


def test_gangs_without_a_verdict_get_one_as_soon_as_possible() -> None:
    """Two cycles place what one may, the third finds the nodes full."""
    size, reservation = BINDINGS_MAX // 2, 3
    node = make_node("n0", {"cpu": size * reservation * 500, "pods": size * reservation})
    scene = LoggedScene([node])
    for index in range(reservation + 2):
        name = f"g{index}"
        scene.put(make_group(name, size, created_ms=index), *make_pods(name, size, SMALL))
    looks: list[int] = []
    to_examine = Book._to_examine

    def counted(book: Book, *args: Any, **named: Any) -> Any:
        found = to_examine(book, *args, **named)
        looks.append(len(found))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Book, "_to_examine", counted)
        assert len(scene.step().decisions) == 2
        assert not scene.published
        assert len(scene.step().decisions) == 1
        assert {one.name for one in scene.published if one.why is not None} == {"g3", "g4"}
        published = len(scene.published)
        scene.step()
        assert len(scene.published) == published
    assert looks == [5, 3, 0]


def test_gangs_without_a_verdict_get_one_that_names_the_stale_cluster_state() -> None:
    scene = LoggedScene([make_node("n0", {"cpu": 10_000_000, "pods": 9_000})])
    for index in range(3):
        name = f"g{index}"
        pods = make_pods(name, BINDINGS_MAX, SMALL)
        scene.put(make_group(name, BINDINGS_MAX, created_ms=index), *pods)
    assert len(scene.step().decisions) == 1
    assert not scene.published
    scene.step(after_ms=60_000, fresh=False)
    reasons = {one.name: one.why.reason for one in scene.published if one.why is not None}
    assert reasons == {"g1": "ClusterViewStale", "g2": "ClusterViewStale"}


def test_a_running_gang_whose_queue_is_deleted_waits_for_nothing_until_a_member_waits() -> None:
    scene = LoggedScene([make_node("n0")])

    def reason() -> str:
        why = scene.verdicts["group-job"].why
        return why.reason if why is not None else ""

    team = Queue(uid="q", dialect="volcano", name="team", resource_version=1)
    scene.put(team, make_group("job", 2, queue="team"), *make_pods("job", 2, SMALL))
    scene.step()
    scene.carry_out(phase="Running")
    scene.step()
    scene.remove(team)
    scene.step(after_ms=6_000)
    assert reason() == ""
    scene.put(*make_pods("job", 1, SMALL, role="extra"))
    scene.step(after_ms=6_000)
    assert reason() == "QueueMissing"
