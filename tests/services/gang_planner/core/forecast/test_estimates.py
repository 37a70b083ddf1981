"""Gangs start when their estimates say, if nothing else happens than what is known."""

import math
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.gang_planner.core.forecast.estimates import estimates_of
from services.gang_planner.core.forecast.forecast import StartForecast, WaitingGang, forecast
from services.gang_planner.estimator import EstimateFailed, estimates_now
from shared.contracts.decisions import PAST_RUN_STEPS, Checkpoint, PastRunsOfUser
from shared.contracts.questions import StartEstimate
from shared.model.objects import Queue, RunLimits
from tests.services.gang_planner.core.claims import (
    make_device_claim,
    make_device_class,
    make_slice,
)
from tests.services.gang_planner.core.foresight.test_reservations import (
    runs,
    scene_of,
    start,
    submit,
)
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_pods, make_shape
from tests.services.gang_planner.core.test_devices import members
from tests.support.golden import Golden

FULL = make_shape({"cpu": 4000})
MINUTE = 60_000


def estimates(scene: LoggedScene) -> dict[str, StartEstimate]:
    found = estimates_now(scene.planner, scene.now_ms)
    return {estimate.gang_id.removeprefix("group-"): estimate for estimate in found}


def minutes(scene: LoggedScene, name: str) -> tuple[int | None, int | None]:
    """In how many minutes the gang starts, at the earliest and at the latest."""
    estimate = estimates(scene)[name]
    instants = estimate.earliest_ms, estimate.latest_ms
    earliest, latest = (
        round((at_ms - scene.now_ms) / MINUTE) if at_ms else None for at_ms in instants
    )
    return earliest, latest


def past_runs(scene: LoggedScene, *parts: int, namespace: str = "team") -> None:
    """Runs of the past took so many percent of their limits."""
    taken = bytes(round(PAST_RUN_STEPS * math.log2(100 / part)) for part in parts)
    user = PastRunsOfUser(queue="default", namespace=namespace, parts=taken)
    stamp: dict[str, Any] = {"epoch": 1, "up_to": 0, "outcomes_seq": 0}
    scene.decision_seq += 1
    page = Checkpoint(**stamp, page=0, pages=1, past_runs=(user,))
    scene.planner.apply_decision(scene.decision_seq, page)


def busy(*, limit_minutes: int = 30, **group: Any) -> LoggedScene:
    """A gang on all four nodes, which runs since a few seconds."""
    scene = scene_of(4)
    assert start(scene, "all", 4, minutes=limit_minutes, **group)
    return scene


def test_without_past_runs_a_gang_may_start_at_once(golden: Golden) -> None:
    scene = busy()
    assert not start(scene, "next", 4, minutes=10)
    submit(scene, "zlast", 4)
    scene.until_quiet(within_ms=1_000)
    assert minutes(scene, "next") == (0, 30)
    assert minutes(scene, "zlast") == (0, 40)
    found = estimates(scene)
    assert (found["next"].position, found["zlast"].position) == (1, 2)
    golden(found["next"].basis)


def test_short_past_runs_are_the_earliest_start(golden: Golden) -> None:
    scene = busy()
    past_runs(scene, *range(10, 101, 5))
    assert not start(scene, "next", 4, minutes=10)
    earliest, latest = minutes(scene, "next")
    assert latest == 30
    assert earliest is not None
    assert 4 <= earliest <= 8
    golden(estimates(scene)["next"].basis)


def test_a_run_is_longer_than_it_has_been_already() -> None:
    scene = busy()
    past_runs(scene, *(10,) * 15, *(80,) * 5)
    scene.until_quiet(within_ms=15 * MINUTE)
    assert not start(scene, "next", 4, minutes=10)
    assert minutes(scene, "next") == (9, 15)


def test_limits_of_the_queue_alone_are_as_long_as_long_past_runs() -> None:
    scene = scene_of(4)
    limits = RunLimits(usual_s=6_000)
    scene.put(
        Queue(uid="q", dialect="volcano", name="default", resource_version=1, run_limits=limits)
    )
    assert start(scene, "all", 4)
    assert not start(scene, "next", 4)
    assert minutes(scene, "next") == (0, 100)
    past_runs(scene, *(10,) * 10, *(50,) * 10)
    assert minutes(scene, "next") == (10, 50)


def test_gangs_start_when_their_estimates_say() -> None:
    scene = busy()
    names = ["b", "c", "d"]
    for size, name in enumerate(names, 2):
        submit(scene, name, size, minutes=10 * size)
    scene.until_quiet(within_ms=1_000)
    expected = {name: minutes(scene, name)[1] for name in names}
    begin_ms = scene.now_ms
    for _ in range(100):
        scene.until_quiet(within_ms=MINUTE)
        scene.carry_out(phase="Running")
    for name in names:
        (decision,) = (one for _, one in scene.decisions if one.gang == f"team/{name}")
        started = (decision.cycle.now_ms - begin_ms) / MINUTE
        # The scene carries out an eviction within a minute.
        assert (expected[name] or 0) - 1 <= started <= (expected[name] or 0) + 4


def test_what_is_in_flight_arrives() -> None:
    scene = scene_of(4)
    submit(scene, "all", 4, minutes=30)
    scene.step()
    assert len(scene.decisions) == 1
    submit(scene, "next", 4)
    scene.step()
    assert minutes(scene, "next") == (0, 30)


def test_pods_that_leave_are_gone() -> None:
    scene = busy(limit_minutes=0)
    for pod in scene.pods_of("all"):
        scene.change(pod.uid, deleting=True)
    assert not start(scene, "next", 4, minutes=10)
    assert minutes(scene, "next") == (0, 0)


@pytest.mark.parametrize("shared", [False, True], ids=["a claim of the pod", "a named claim"])
@pytest.mark.parametrize("shown", [False, True], ids=["just bound", "allocated"])
def test_devices_are_free_when_the_gangs_with_their_claims_have_ended(
    *, shared: bool, shown: bool
) -> None:
    scene = scene_of(1)
    owner: dict[str, Any] = {} if shared else {"owner_uid": "a-0"}
    scene.put(make_device_class(), make_slice("n0", 1), make_device_claim("a", **owner))
    scene.put(make_group("a", 1, run_limit_s=1_800), *members("a", [("a",)]))
    assert runs(scene, "a")
    if shown:
        devices = (("gpu.example.com", "n0", "gpu-0"),)
        given: dict[str, Any] = {"allocated": devices, "reserved_for": ("a-0",)}
        scene.put(make_device_claim("a", **owner, **given, resource_version=2))
    scene.put(make_device_claim("b", owner_uid="b-0"))
    scene.put(make_group("b", 1, run_limit_s=1_800), *members("b", [("b",)]))
    assert not runs(scene, "b")
    assert minutes(scene, "b") == (0, 30)


def test_gangs_without_a_limit_are_named_in_their_own_namespace_only(golden: Golden) -> None:
    scene = scene_of(4)
    others: Any = {"namespace": "others"}
    scene.put(make_group("secret", 1, **others), *make_pods("secret", 1, FULL, **others))
    assert start(scene, "own", 3)
    scene.carry_out(phase="Running")
    assert not start(scene, "next", 4, minutes=10)
    found = estimates(scene)["next"]
    assert (found.earliest_ms, found.latest_ms) == (0, 0)
    assert "secret" not in found.basis
    golden(found.basis)


def test_a_gang_that_never_fits_has_no_instant(golden: Golden) -> None:
    scene = busy()
    assert not start(scene, "larger", 5, minutes=10)
    found = estimates(scene)["larger"]
    assert (found.earliest_ms, found.latest_ms) == (0, 0)
    golden(found.basis)


def test_a_forecast_that_has_no_time_left_says_how_far_it_came(golden: Golden) -> None:
    scene = busy()
    submit(scene, "next", 4, minutes=10)
    submit(scene, "zlast", 4, minutes=10)
    scene.until_quiet(within_ms=1_000)
    turns = iter([True, True, False])
    late = forecast(scene.planner, scene.now_ms, short=False, go_on=lambda: next(turns))
    found = {one.gang_id: one for one in estimates_of(late, None, scene.now_ms)}
    assert found["group-next"].latest_ms
    assert not found["group-zlast"].latest_ms
    golden(found["group-zlast"].basis)


def test_a_gang_that_the_forecast_of_short_runs_does_not_reach_starts_later_than_that() -> None:
    waiting = [WaitingGang("a", "team", "default", 1)]
    late = StartForecast(waiting, {"a": 90_000}, 90_000, cut_off=False, endless=[])
    early = StartForecast(waiting, {}, 50_000, cut_off=True, endless=[])
    (estimate,) = estimates_of(late, early, 10_000)
    assert (estimate.earliest_ms, estimate.latest_ms) == (50_000, 90_000)


def test_places_are_counted_by_queue() -> None:
    scene = busy()
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1))
    for name, queue in (("a", "default"), ("b", "q"), ("c", "default"), ("d", "q")):
        scene.put(make_group(name, 2, queue=queue, run_limit_s=60), *make_pods(name, 2, FULL))
        scene.until_quiet(within_ms=1_000)
    found = estimates(scene)
    assert {name: found[name].position for name in "abcd"} == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_gangs_that_do_not_wait_for_capacity_have_no_estimate() -> None:
    scene = busy()
    scene.put(make_group("part", 3), *make_pods("part", 2, FULL))
    scene.until_quiet(within_ms=1_000)
    assert estimates(scene) == {}


def test_a_copy_changes_nothing() -> None:
    scene, other = busy(), busy()
    for each in (scene, other):
        submit(each, "next", 4, minutes=10)
        each.until_quiet(within_ms=1_000)
    assert estimates(scene) == estimates(scene)
    for each in (scene, other):
        each.until_quiet(within_ms=40 * MINUTE)
    assert list(map(repr, scene.records)) == list(map(repr, other.records))


def test_the_failure_of_a_copy_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = busy()

    def fail(*_: object, **__: object) -> StartForecast:
        raise ZeroDivisionError("of no use")

    monkeypatch.setattr("services.gang_planner.estimator.forecast", fail)
    with pytest.raises(EstimateFailed, match="ZeroDivisionError: of no use"):
        estimates_now(scene.planner, scene.now_ms)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such score")
def test_a_copy_is_ended_before_the_planner_where_memory_does_not_suffice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The score is reported as the instant at which the copy had finished."""
    scene = busy()
    submit(scene, "next", 4)
    scene.until_quiet(within_ms=1_000)

    def score(*_: object, **__: object) -> StartForecast:
        points = int(Path("/proc/self/oom_score_adj").read_text(encoding="ascii"))
        return StartForecast([], {}, points, cut_off=False, endless=[])

    def seen(late: StartForecast, *_: object) -> tuple[StartEstimate, ...]:
        return (StartEstimate(gang_id="g", position=late.until_ms),)

    monkeypatch.setattr("services.gang_planner.estimator.forecast", score)
    monkeypatch.setattr("services.gang_planner.estimator.estimates_of", seen)
    (estimate,) = estimates_now(scene.planner, scene.now_ms)
    assert estimate.position == 1_000


def test_runs_that_end_are_in_the_next_checkpoint_and_known_to_planners_that_read_it() -> None:
    scene = scene_of(4)
    for name, ran in (("a", 10), ("b", 20)):
        assert start(scene, name, 1, minutes=40)
        scene.until_quiet(within_ms=ran * MINUTE)
        scene.remove_together(*scene.pods_of(name))
        scene.until_quiet(within_ms=1_000)
    (user,) = scene.pages[0].past_runs
    assert (user.queue, user.namespace) == ("default", "team")
    assert list(user.parts) == [2 * PAST_RUN_STEPS, PAST_RUN_STEPS]
    scene.restart(checkpoint=True)
    assert scene.planner.checkpoint(0)[0].past_runs == (user,)


def test_a_run_that_ends_at_its_limit_took_all_of_it() -> None:
    scene = busy(limit_minutes=10)
    scene.until_quiet(within_ms=11 * MINUTE)
    scene.carry_out()
    scene.until_quiet(within_ms=1_000)
    (user,) = scene.pages[0].past_runs
    assert list(user.parts) == [0]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(user), type=PastRunsOfUser) == user
