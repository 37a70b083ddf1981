"""`volcano-scheduler.conf`: what users have is accepted, what is wrong is named."""

import pathlib

import pytest

from services.gang_planner.core.configuration import unsupported
from services.gang_planner.core.configuration.configuration import (
    _FLAGS,
    _SWITCHED,
    parse_configuration,
    with_defaults,
)
from services.gang_planner.core.framework.arguments import ConfigurationError
from services.gang_planner.core.policies import discovered
from services.gang_planner.core.state.gang_settings import Defaults
from services.gang_planner.core.state.planner_state import State

#: The configuration of Volcano's chart.
CHART = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""

#: The example that kube-batch shipped.
KUBE_BATCH = """
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
    arguments:
      predicate.MemoryPressureEnable: "true"
  - name: proportion
  - name: nodeorder
    arguments:
      leastrequested.weight: "2"
"""


def test_an_empty_file_is_volcanos_built_in_default() -> None:
    found = parse_configuration("")
    assert found.actions == ("enqueue", "allocate", "backfill")
    assert [one.name for one in found.plugins][:3] == ["priority", "gang", "conformance"]
    assert found == parse_configuration("")


def test_volcanos_chart_is_accepted() -> None:
    found = parse_configuration(CHART)
    names = [one.name for one in found.policies(State()).policies]
    assert [one for one in names if one not in {"overcommit", "drf"}] == [
        "priority",
        "gang",
        "conformance",
        "predicates",
        "proportion",
        "nodeorder",
        "binpack",
    ]


def test_kube_batchs_example_is_accepted() -> None:
    found = parse_configuration(KUBE_BATCH)
    assert found.actions == ("reclaim", "allocate", "backfill", "preempt")
    (path,) = [one for one in found.warnings if "drf" not in one]
    assert path.endswith("arguments[predicate.MemoryPressureEnable]: has no effect")


def test_what_asks_for_room_before_allocate_asks_once_more_after_it() -> None:
    assert parse_configuration(KUBE_BATCH).in_turn[-1] == "reclaim"
    plain = parse_configuration("actions: enqueue, allocate, reclaim")
    assert plain.in_turn == plain.actions


def test_settings_of_older_and_newer_releases_of_volcano_are_accepted_and_reported() -> None:
    text = """
actions: enqueue, elect, reserve, allocate
tiers:
- plugins: [{name: drf, enableNamespaceOrder: false}, {name: reservation}, {name: fairshare}]
"""
    found = parse_configuration(text)
    assert found.actions == ("enqueue", "reserve", "allocate")
    assert len(found.warnings) == 4


def test_settings_without_effect_are_reported_with_their_reasons() -> None:
    text = """
actions: allocate, shuffle
tiers:
- plugins:
  - {name: gang, enableJobReady: false}
  - {name: extender, arguments: {extender.urlPrefix: http://127.0.0.1}}
  - {name: ours-of-old}
  - {name: binpack, arguments: {binpack.wait: 3}}
"""
    warnings = parse_configuration(text).warnings
    assert [one.partition(":")[0] for one in warnings] == [
        "action shuffle",
        "plugin gang",
        "plugin extender",
        "plugin ours-of-old",
        "tiers[0].plugins[binpack].arguments[binpack.wait]",
    ]
    assert "cannot load plugins" in warnings[3]


@pytest.mark.parametrize("flag", sorted(_FLAGS))
def test_every_flag_switches_something_off_or_is_known_to_do_nothing(flag: str) -> None:
    core = pathlib.Path(unsupported.__file__).parents[1]
    sources = [core / "configuration/configuration.py", *core.glob("framework/*.py")]
    # Once in the table of flags itself.
    named = sum(path.read_text().count(f'"{flag}"') for path in sources)
    assert (named > 1 or bool(_SWITCHED.get(flag))) != (flag in unsupported.FLAGS)


def test_nested_arguments_are_checked_by_their_place() -> None:
    text = """
tiers:
- plugins:
  - name: resource-strategy-fit
    arguments: {resources: {cpu: {type: Fullest}}}
"""
    place = r"arguments\[resources\].*\[cpu\].*\[type\]: must be"
    with pytest.raises(ConfigurationError, match=place):
        parse_configuration(text)


def test_the_digest_distinguishes_configurations() -> None:
    assert parse_configuration(CHART).digest != parse_configuration(KUBE_BATCH).digest


def test_a_flag_switches_off_a_part_of_a_policy() -> None:
    text = "tiers: [{plugins: [{name: priority, enableJobOrder: false}, {name: gang}]}]"
    policies = parse_configuration(text).policies(State()).policies
    assert [one.group_key is None for one in policies] == [True, False]


@pytest.mark.parametrize(
    ("text", "where", "rule"),
    [
        ("actions: [", "file", "YAML"),
        ("actions: !!timestamp 2026-13-45", "file", "YAML"),
        ("actions: 2026-13-45", "actions", "unknown action"),
        ("- a", "file", "mapping, not list"),
        ("action: allocate", "action", "unknown key"),
        ("actions: allocate, dance", "actions", "unknown action 'dance'"),
        ("actions: ' , '", "actions", "at least one"),
        ("actions: 7", "actions", "separated by commas"),
        ("tiers: x", "tiers", "must be a list"),
        ("tiers: [x]", "tiers[0]", "must be a mapping"),
        ("tiers: [{plugins: [{title: gang}]}]", "plugins[0].name", "must be a plugin's name"),
        ("tiers: [{plugins: [{name: gang, enable: true}]}]", "plugins[0].enable", "unknown key"),
        (
            "tiers: [{plugins: [{name: gang, enableJobOrder: 'no'}]}]",
            "plugins[0].enableJobOrder",
            "true or false",
        ),
        ("tiers: [{plugins: [{name: gang}, {name: gang}]}]", "tiers", "more than once"),
        ("tiers: [{plugins: [{name: proportion}, {name: capacity}]}]", "tiers", "exclude"),
        (
            "tiers: [{plugins: [{name: nodeorder, arguments: {leastrequested.weight: much}}]}]",
            "tiers[0].plugins[nodeorder].arguments[leastrequested.weight]",
            "whole number",
        ),
        (
            "tiers: [{plugins: [{name: binpack, arguments: {binpack.weight: -1}}]}]",
            "arguments[binpack.weight]",
            "at least 0",
        ),
        (
            "tiers: [{plugins: [{name: predicates, arguments: {predicate.NodePortsEnable: 2}}]}]",
            "arguments[predicate.NodePortsEnable]",
            "true or false",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_rule(text: str, where: str, rule: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_configuration(text)
    assert where in caught.value.where
    assert rule in str(caught.value)


def test_a_file_of_megabytes_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="characters"):
        parse_configuration("# " + "x" * 300_000)


def test_an_alias_bomb_is_refused_with_its_line() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(20)
    )
    with pytest.raises(ConfigurationError, match="line 15: aliases must stand for"):
        parse_configuration(bomb)


def test_every_policy_in_the_folder_can_be_configured() -> None:
    for name in discovered():
        found = parse_configuration(f"tiers: [{{plugins: [{{name: {name}}}]}}]")
        assert [one.name for one in found.policies(State()).policies] == [name]


@pytest.mark.parametrize("text", ["", CHART, "actions: allocate"])
def test_the_planners_own_settings_travel_in_the_source_and_count_in_the_digest(text: str) -> None:
    plain = parse_configuration(text)
    assert parse_configuration(with_defaults(text, Defaults())) == plain
    own = Defaults(preflight="always", repair_deadline_s=5, hold_s=0)
    found = parse_configuration(with_defaults(text, own))
    assert found.defaults == own
    assert (found.actions, found.plugins) == (plain.actions, plain.plugins)
    assert found.digest != plain.digest
    assert parse_configuration(found.source) == found, "a recording keeps the source"


def test_settings_that_no_planner_wrote_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="planner settings"):
        parse_configuration('actions: allocate\n# tutti planner settings: {"preflight": "never"}')


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ("{}", (0, 60, 3_600_000)),
        ("{reservations: 100, heldPercent: 0, heldSeconds: 60}", (100, 0, 60_000)),
    ],
)
def test_reservations_are_arguments_of_the_action_reserve(
    given: str, rules: tuple[int, int, int]
) -> None:
    found = parse_configuration(f"configurations: [{{name: reserve, arguments: {given}}}]")
    assert found.reserve_rules == rules


@pytest.mark.parametrize(
    ("name", "value", "bound"),
    [
        ("reservations", 101, "most 100"),
        ("reservations", -1, "least 0"),
        ("heldPercent", 101, "most 100"),
        ("heldSeconds", 86_401, "most 86400"),
    ],
)
def test_reservations_have_bounds(name: str, value: int, bound: str) -> None:
    path = rf"configurations\[reserve\]\.arguments\[{name}\]"
    with pytest.raises(ConfigurationError, match=rf"{path}: must be at {bound}, not {value}"):
        parse_configuration(f"configurations: [{{name: reserve, arguments: {{{name}: {value}}}}}]")


def test_the_planners_setting_is_the_number_of_reservations_unless_the_file_has_one() -> None:
    usual = Defaults(reservations=3)
    assert parse_configuration(with_defaults("", usual)).reserve_rules.per_root == 3
    text = "configurations: [{name: reserve, arguments: {reservations: 0}}]"
    assert parse_configuration(with_defaults(text, usual)).reserve_rules.per_root == 0
