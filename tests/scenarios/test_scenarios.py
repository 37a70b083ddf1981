"""Every scenario in the folders beside this file comes out as it says."""

import pathlib

import msgspec
import pytest

from services.gang_planner.core.configuration.configuration import ACTIONS
from services.gang_planner.core.policies import discovered
from tests.scenarios.reading import (
    Expected,
    GangGiven,
    Members,
    Scenario,
    play,
    scenarios,
    with_queues_renamed,
)

_FOUND = list(scenarios(pathlib.Path(__file__).parent))


@pytest.mark.parametrize("scenario", [one for _, one in _FOUND], ids=[name for name, _ in _FOUND])
def test_scenario(scenario: Scenario) -> None:
    play(scenario)


_SEVERAL_QUEUES = [
    (name, one) for name, one in _FOUND if next(with_queues_renamed(one), None) is not None
]


@pytest.mark.parametrize(
    "scenario",
    [one for _, one in _SEVERAL_QUEUES],
    ids=[name for name, _ in _SEVERAL_QUEUES],
)
def test_a_scenario_comes_out_the_same_whatever_the_names_of_its_queues_are(
    scenario: Scenario,
) -> None:
    for renamed in with_queues_renamed(scenario):
        play(renamed)


def test_every_action_and_every_policy_has_a_folder() -> None:
    folders = {name.partition("/")[0] for name, _ in _FOUND}
    assert sorted((set(discovered()) | ACTIONS) - folders) == []


def test_no_two_scenarios_have_one_name() -> None:
    names = [name for name, _ in _FOUND]
    assert sorted(names) == sorted(set(names))


ONE = Scenario(
    title="one",
    nodes=({"name": "n"},),
    gangs=(GangGiven(name="a", min_member=1, members=(Members(requests={"cpu": 1000}),)),),
    expect=Expected(bound={"a": 1}, where={"a-worker-0": "n"}),
)


@pytest.mark.parametrize(
    "expect",
    [
        Expected(),
        Expected(bound={"a": 2}),
        Expected(bound={"a": 1}, where={"a-worker-0": "m"}),
        Expected(bound={"a": 1}, waits={"a": "NotEnoughResources"}),
        Expected(bound={"a": 1}, says={"a": "anything"}),
        Expected(bound={"a": 1}, evicted={"a": 1}),
        Expected(bound={"a": 1}, conditions={"a": {"Unschedulable": "NotEnoughResources"}}),
    ],
    ids=["nothing", "more", "elsewhere", "waits", "says", "evicted", "conditions"],
)
def test_a_scenario_that_comes_out_otherwise_fails(expect: Expected) -> None:
    play(ONE)
    with pytest.raises(AssertionError):
        play(msgspec.structs.replace(ONE, expect=expect))


def test_a_field_that_no_model_has_is_refused() -> None:
    with pytest.raises(AssertionError, match="Node has no field 'zone'"):
        play(msgspec.structs.replace(ONE, nodes=({"name": "n", "zone": {}},)))
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"title": "x", "expect": {"bind": {}}}, Scenario)
