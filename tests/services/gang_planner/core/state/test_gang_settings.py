"""Durations of groups: at most the ceiling, and the group's condition says so."""

import pytest

from services.gang_planner.core.configuration.configuration import (
    parse_configuration,
    with_defaults,
)
from services.gang_planner.core.state import gang_settings
from services.gang_planner.core.state.gang_settings import Defaults
from services.gang_planner.core.state.gangs import Gang
from shared.contracts import annotations
from shared.dialects.ceilings import LIMITED, Ceilings
from shared.model.objects import Labels, Queue
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

HUGE = "999999999"
CPU = make_shape({"cpu": 1000})
_READERS = {
    annotations.HOLD_SECONDS: gang_settings.hold_ms,
    annotations.RESERVE_SECONDS: gang_settings.reserve_ms,
    annotations.REPAIR_DEADLINE_SECONDS: gang_settings.repair_deadline_ms,
    annotations.MINIMUM_RUN_SECONDS: gang_settings.minimum_run_ms,
}


def scene_of(on_group: Labels, on_queue: Labels = (), conf: str = "") -> Scene:
    scene = Scene([make_node("n0", {"cpu": 4_000, "pods": 10})], conf=conf)
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, settings=on_queue))
    scene.put(make_group("job", 1, queue="q", settings=on_group), *make_pods("job", 1, CPU))
    for decision in scene.settle():
        scene.run(decision)
    scene.settle()
    scene.step(after_ms=3_000)
    return scene


def defaults(scene: Scene) -> Defaults:
    return scene.state.defaults


def gang_of(scene: Scene) -> Gang:
    (gang,) = [one for one in scene.state.gangs.gangs.values() if one.name == "job"]
    return gang


def test_every_setting_with_a_ceiling_is_read_through_it() -> None:
    assert _READERS.keys() | {annotations.COOLDOWN_TIME} == LIMITED.keys()


@pytest.mark.parametrize("key", sorted(_READERS))
def test_a_group_gets_at_most_the_ceiling_and_its_condition_names_both(key: str) -> None:
    scene = scene_of(((key, HUGE),))
    most_s = Ceilings().of(key)
    assert most_s is not None
    assert _READERS[key](gang_of(scene), defaults(scene)) == 1_000 * most_s
    (condition,) = [
        one for one in scene.verdict("job").conditions if one.type == "DurationShortened"
    ]
    assert (condition.status, condition.reason) == ("True", "AboveCeiling")
    assert condition.message.startswith(f"{key}: {HUGE} s is above the ceiling of {most_s} s (--")


@pytest.mark.parametrize("key", sorted(_READERS))
def test_a_shorter_duration_is_the_groups_own(key: str) -> None:
    scene = scene_of(((key, "7"),))
    assert _READERS[key](gang_of(scene), defaults(scene)) == 7_000
    types = {one.type for one in scene.verdict("job").conditions}
    assert "DurationShortened" not in types


@pytest.mark.parametrize("key", sorted(_READERS))
def test_a_queue_which_the_administrator_writes_has_no_ceiling_and_raises_that_of_its_groups(
    key: str,
) -> None:
    scene = scene_of((), ((key, "90000"),))
    assert _READERS[key](gang_of(scene), defaults(scene)) == 90_000_000
    scene = scene_of(((key, HUGE),), ((key, "90000"),))
    assert _READERS[key](gang_of(scene), defaults(scene)) == 90_000_000


def test_the_operators_ceilings_are_recorded_with_the_configuration_for_replays() -> None:
    own = Defaults(ceilings=Ceilings(hold_s=5, reserve_s=6, repair_deadline_s=7, minimum_run_s=8))
    text = with_defaults("", own)
    found = parse_configuration(text)
    assert found.defaults == own
    assert found.digest != parse_configuration("").digest
    scene = scene_of(((annotations.HOLD_SECONDS, HUGE),), conf=text)
    # Never shorter than what it would get without a setting of its own.
    assert gang_settings.hold_ms(gang_of(scene), defaults(scene)) == 60_000


def test_a_configuration_that_was_recorded_before_ceilings_existed_has_the_built_in_ones() -> None:
    text = '\n# tutti planner settings: {"hold_s":5}'
    assert parse_configuration(text).defaults == Defaults(hold_s=5)


def test_a_cool_down_is_at_most_the_ceiling() -> None:
    (pod,) = make_pods("job", 1, CPU, cooldown_ms=2**63 // 1_000_000)
    assert gang_settings.cooldown_ms(pod, Defaults()) == 3_600_000
