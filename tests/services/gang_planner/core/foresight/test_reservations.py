"""A gang that waits for capacity gets the earliest instant at which it fits; gangs behind it start
only if they leave what it needs then.
"""

from typing import Any

from shared.contracts.decisions import NoteClosed, NoteOpened
from shared.model.objects import PriorityClass, Queue, RunLimits
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape
from tests.support.golden import Golden

FULL = make_shape({"cpu": 4000})
HALF = make_shape({"cpu": 2000})
MINUTE = 60_000
CONF = """
actions: "enqueue, allocate, backfill"
tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]}]
configurations:
- name: reserve
  arguments: {reservations: %d, heldSeconds: 600%s}
"""


def scene_of(nodes: int, *, reservations: int = 1, more: str = "") -> LoggedScene:
    conf = CONF % (reservations, more)
    return LoggedScene([make_node(f"n{i}") for i in range(nodes)], conf=conf)


def submit(
    scene: LoggedScene, name: str, size: int, minutes: int = 0, shape: bytes = FULL, **group: Any
) -> None:
    scene.put(make_group(name, size, run_limit_s=60 * minutes, **group))
    scene.put(*make_pods(name, size, shape))


def runs(scene: LoggedScene, name: str) -> bool:
    """Whether the gang was placed; its pods run then."""
    scene.until_quiet(within_ms=1_000)
    scene.carry_out()
    for pod in scene.pods_of(name):
        if pod.node and pod.phase == "Pending":
            scene.change(pod.uid, phase="Running")
    scene.until_quiet(within_ms=1_000)
    return any(decision.gang == f"team/{name}" for _, decision in scene.decisions)


def start(scene: LoggedScene, name: str, size: int, minutes: int = 0, **given: Any) -> bool:
    submit(scene, name, size, minutes, **given)
    return runs(scene, name)


def end(scene: LoggedScene, name: str) -> None:
    scene.remove(*scene.pods_of(name))
    scene.until_quiet(within_ms=1_000)


def reserved(scene: LoggedScene, name: str) -> NoteOpened | None:
    notes = [
        record
        for _, record in scene.records
        if isinstance(record, NoteOpened | NoteClosed)
        and (record.kind, record.gang_id) == ("reservation", f"group-{name}")
    ]
    return notes[-1] if notes and isinstance(notes[-1], NoteOpened) else None


def instant(scene: LoggedScene, name: str) -> int | None:
    """In how many minutes the gang starts at the latest."""
    note = reserved(scene, name)
    return None if note is None else round((note.until_ms - scene.now_ms) / MINUTE)


def test_a_large_gang_gets_the_end_of_the_gangs_in_its_way(golden: Golden) -> None:
    scene = scene_of(4)
    assert start(scene, "a", 2, minutes=10)
    assert start(scene, "b", 2, minutes=30)
    assert not start(scene, "big", 4, minutes=60)
    assert instant(scene, "big") == 30
    note = reserved(scene, "big")
    assert note is not None
    golden(note.message)


def test_a_gang_that_would_end_too_late_waits_and_a_short_one_starts(golden: Golden) -> None:
    scene = scene_of(4)
    assert start(scene, "a", 3, minutes=30)
    assert not start(scene, "big", 4, minutes=60)
    assert not start(scene, "long", 1, minutes=31)
    assert not start(scene, "endless", 1)
    assert start(scene, "short", 1, minutes=29)
    why = scene.verdict("long").why
    assert why is not None
    assert why.reason == "WouldDelayReservation"
    golden(why.sentence)


def test_a_gang_starts_on_what_the_reservation_leaves() -> None:
    scene = scene_of(4)
    assert start(scene, "a", 2, minutes=30)
    assert not start(scene, "big", 3, minutes=60)
    assert start(scene, "long", 1, minutes=600), "three nodes are left then"
    assert not start(scene, "longer", 1, minutes=600)
    assert instant(scene, "big") == 30


def test_the_large_gang_starts_when_its_instant_comes_and_the_others_after_it() -> None:
    scene = scene_of(4)
    assert start(scene, "a", 3, minutes=30)
    submit(scene, "big", 4, minutes=60)
    assert not runs(scene, "big")
    for number in range(5):
        assert not start(scene, f"small-{number}", 1, minutes=40)
    scene.now_ms += 20 * MINUTE
    end(scene, "a")
    assert runs(scene, "big"), "a ended before its limit"
    assert reserved(scene, "big") is None
    assert scene.notes("reservation")[-1] != ("closed", "NoInstant")


def test_a_reservation_lasts_when_nothing_runs_any_more() -> None:
    scene = scene_of(4)
    assert start(scene, "a", 4, minutes=30)
    assert not start(scene, "large", 4, minutes=60)
    for number in range(4):
        assert not start(scene, f"first-by-name-{number}", 1, minutes=60)
    end(scene, "a")
    assert runs(scene, "large")
    assert ("closed", "NoInstant") not in scene.notes("reservation")


def test_the_reservation_moves_when_a_gang_ends_early() -> None:
    scene = scene_of(4)
    assert start(scene, "a", 2, minutes=10)
    assert start(scene, "b", 1, minutes=60)
    assert start(scene, "c", 1, minutes=90)
    submit(scene, "big", 4, minutes=60)
    assert not runs(scene, "big")
    assert instant(scene, "big") == 90
    end(scene, "c")
    runs(scene, "big")
    assert instant(scene, "big") == 60


def test_a_gang_without_an_instant_is_held_capacity_after_a_time_and_not_for_ever(
    golden: Golden,
) -> None:
    scene = scene_of(4)
    assert start(scene, "a", 2)
    assert start(scene, "b", 2)
    submit(scene, "big", 4)
    assert not runs(scene, "big")
    assert scene.notes("reservation") == [("opened", "Paused")]
    end(scene, "a")
    assert start(scene, "small-0", 1), "nothing is kept yet"
    scene.until_quiet(within_ms=30 * MINUTE)
    note = reserved(scene, "big")
    assert note is not None
    assert note.reason == "Held"
    assert not start(scene, "small-1", 1, minutes=1)
    why = scene.verdict("small-1").why
    assert why is not None
    golden(why.sentence)
    scene.until_quiet(within_ms=10 * MINUTE)
    note = reserved(scene, "big")
    assert note is not None
    assert note.reason == "Paused"
    assert runs(scene, "small-1"), "the pause is as long as the hold"


def test_a_gang_of_higher_priority_does_not_wait_for_a_reservation() -> None:
    scene = scene_of(4)
    scene.put(PriorityClass(uid="p", name="high", resource_version=1, value=100))
    assert start(scene, "a", 3, minutes=30)
    submit(scene, "big", 4, minutes=60)
    assert not runs(scene, "big")
    assert start(scene, "urgent", 1, minutes=600, priority_class="high")
    runs(scene, "big")
    assert instant(scene, "big") == 600


def test_a_planner_that_takes_over_keeps_the_reservation() -> None:
    for checkpoint in (False, True):
        scene = scene_of(4)
        assert start(scene, "a", 3, minutes=30)
        submit(scene, "big", 4, minutes=60)
        assert not runs(scene, "big")
        before = reserved(scene, "big")
        scene.restart(checkpoint=checkpoint)
        assert not start(scene, "long", 1, minutes=600)
        assert reserved(scene, "big") == before
        assert start(scene, "short", 1, minutes=5)


def test_without_reservations_small_gangs_go_first() -> None:
    scene = scene_of(4, reservations=0)
    assert start(scene, "a", 3, minutes=30)
    assert not start(scene, "big", 4, minutes=60)
    assert start(scene, "long", 1, minutes=600)
    assert not scene.notes("reservation")


def test_with_many_reservations_no_gang_delays_any_earlier_one() -> None:
    scene = scene_of(4, reservations=100)
    assert start(scene, "a", 3, minutes=30)
    assert not start(scene, "big", 4, minutes=60)
    assert not start(scene, "next", 3, minutes=20)
    assert (instant(scene, "big"), instant(scene, "next")) == (30, 90)
    assert not start(scene, "third", 2, minutes=30, shape=FULL)
    assert instant(scene, "third") == 110
    assert start(scene, "short", 1, minutes=29)


def test_members_above_the_minimum_obey_as_well() -> None:
    scene = scene_of(4)
    assert start(scene, "a", 2, minutes=30)
    assert not start(scene, "big", 3, minutes=60)
    scene.put(make_group("wide", 1, run_limit_s=6_000), *make_pods("wide", 2, FULL))
    assert runs(scene, "wide")
    decisions = [one for _, one in scene.decisions if one.gang == "team/wide"]
    assert sum(len(decision.bindings) for decision in decisions) == 1


def test_a_reservation_ends_with_its_gang() -> None:
    scene = scene_of(4)
    assert start(scene, "a", 3, minutes=30)
    submit(scene, "big", 4, minutes=60)
    assert not runs(scene, "big")
    submit(scene, "long", 1, minutes=600)
    assert not runs(scene, "long")
    end(scene, "big")
    assert runs(scene, "long")
    assert scene.notes("reservation")[-1] == ("closed", "NotWaiting")


def test_a_lost_node_moves_the_reservation() -> None:
    scene = scene_of(5)
    assert start(scene, "a", 3, minutes=30)
    assert start(scene, "b", 1, minutes=90)
    submit(scene, "big", 4, minutes=60)
    assert not runs(scene, "big")
    assert instant(scene, "big") == 30
    free = {f"n{i}" for i in range(5)} - {pod.node for pod in scene.pods.values() if pod.node}
    scene.remove(*(scene.objects[f"uid-{name}"] for name in free))
    runs(scene, "big")
    assert instant(scene, "big") == 90


def test_the_next_gang_has_its_instant_before_gangs_behind_it_are_tried() -> None:
    scene = scene_of(5)
    assert start(scene, "a", 3, minutes=30)
    assert start(scene, "b", 2, minutes=60)
    assert not start(scene, "big", 4, minutes=60)
    assert not start(scene, "huge", 5, minutes=60)
    assert not start(scene, "long", 1, minutes=600)
    scene.remove(*scene.pods_of("a"))
    assert scene.step(after_ms=5_000).notes, "plans are not due again in this second"
    scene.remove(*scene.pods_of("b"))
    scene.step(after_ms=1)
    assert reserved(scene, "huge") is not None
    scene.until_quiet(within_ms=10_000)
    decided = [decision.gang for _, decision in scene.decisions]
    assert decided == ["team/a", "team/b", "team/big"], "what is left is part of the next gang's"


def test_a_gang_that_fits_in_no_case_delays_no_reservation() -> None:
    scene = scene_of(4)
    assert start(scene, "a", 3, minutes=30)
    assert not start(scene, "big", 4, minutes=60)
    assert not start(scene, "wide", 2, minutes=600)
    why = scene.verdict("wide").why
    assert why is not None
    assert why.reason == "NotEnoughResources"


def test_what_becomes_free_until_the_instant_serves_the_reservation() -> None:
    scene = scene_of(1)
    assert start(scene, "a", 1, minutes=30, shape=make_shape({"cpu": 3000}))
    assert not start(scene, "big", 1, minutes=60, shape=HALF)
    assert start(scene, "endless", 1, shape=make_shape({"cpu": 1000})), "3 of 4 CPUs are left then"
    assert instant(scene, "big") == 30


def test_a_hold_takes_at_most_its_part_of_the_cluster() -> None:
    scene = scene_of(4, more=", heldPercent: 50")
    assert start(scene, "a", 1)
    assert not start(scene, "big", 4)
    scene.until_quiet(within_ms=30 * MINUTE)
    note = reserved(scene, "big")
    assert note is not None
    assert note.reason == "Held"
    assert sum(count for _, places in note.rooms for _, count in places) == 2


def test_plans_are_made_once_a_second_while_cycles_decide_something() -> None:
    scene = scene_of(4)
    assert start(scene, "a", 2, minutes=10)
    assert start(scene, "b", 1, minutes=60)
    assert start(scene, "c", 1, minutes=90)
    assert not start(scene, "big", 4, minutes=60)
    scene.now_ms += 10_000
    for name in ("c", "b"):
        scene.remove(*scene.pods_of(name))
        scene.step(after_ms=1)
    assert instant(scene, "big") == 60
    scene.until_quiet(within_ms=1_000)
    assert instant(scene, "big") == 10


def test_a_shorter_limit_of_a_running_gang_moves_the_reservation() -> None:
    scene = scene_of(4)
    assert start(scene, "a", 3, minutes=60)
    assert not start(scene, "big", 4, minutes=60)
    assert instant(scene, "big") == 60
    scene.put(make_group("a", 3, run_limit_s=1_200, resource_version=2))
    runs(scene, "big")
    assert instant(scene, "big") == 20


def test_an_overrun_moves_the_reservation_that_counted_on_it() -> None:
    scene = scene_of(4)
    limits = RunLimits(enforced=False)
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, run_limits=limits))
    assert start(scene, "a", 3, minutes=30, queue="q")
    assert not start(scene, "big", 4, minutes=60, queue="q")
    assert instant(scene, "big") == 30
    scene.until_quiet(within_ms=31 * MINUTE)
    assert instant(scene, "big") == 2, "another tenth of the limit"


def test_a_gang_that_is_being_evicted_is_expected_to_end_soon() -> None:
    scene = scene_of(4)
    assert start(scene, "a", 3, minutes=30)
    assert not start(scene, "big", 4, minutes=60)
    scene.until_quiet(within_ms=31 * MINUTE)
    assert len(scene.releases) == 1
    noted = len(scene.notes("reservation"))
    scene.until_quiet(within_ms=MINUTE)
    note = reserved(scene, "big")
    assert note is not None
    assert note.until_ms > scene.now_ms
    assert len(scene.notes("reservation")) - noted <= 7, "a note every ten seconds"


def test_gangs_of_other_namespaces_are_a_count_and_have_no_name(golden: Golden) -> None:
    scene = scene_of(4)
    others: Any = {"namespace": "others"}
    scene.put(
        make_group("secret", 3, run_limit_s=1_800, **others),
        *make_pods("secret", 3, FULL, **others),
    )
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet(within_ms=1_000)
    assert not start(scene, "big", 4, minutes=60)
    note = reserved(scene, "big")
    assert note is not None
    scene.put(make_group("late", 1, **others), *make_pods("late", 1, FULL, **others))
    scene.until_quiet(within_ms=1_000)
    why = scene.verdict("late").why
    assert why is not None
    golden(note.message, why.sentence)
    assert "secret" not in note.message
    assert "big" not in why.sentence
