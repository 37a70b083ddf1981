"""What admission refuses, dialect by dialect. Verdicts on Volcano's kinds are those its own
webhooks were recorded to give.
"""

from typing import Any

import pytest

from shared.dialects.discovery import by_precedence, dialects
from shared.dialects.discovery import dialect as dialect_named

incubator, sigs, volcano = map(dialect_named, ("incubator", "sigs", "volcano"))

TOO_MUCH = 'spec.deserved.cpu: Invalid value: "2": deserved[cpu]=2'
BOTH_TIERS = {"highestTierAllowed": 1, "highestTierName": "x"}


def group_errors(dialect: Any, spec: Any, **more: Any) -> list[str]:
    candidate = {"metadata": {"name": "trial"}, "spec": spec, **more}
    return [error.text for error in dialect.validate("PodGroup", candidate)]


def queue_errors(dialect: Any, spec: Any, notes: dict[str, Any] | None = None) -> list[str]:
    candidate = {"metadata": {"name": "trial", "annotations": notes}, "spec": spec}
    return [error.text for error in dialect.validate("Queue", candidate)]


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"minMember": 0},
        {"minMember": 3, "minTaskMember": {"a": 1, "b": 2}},
        {"minMember": 3, "minTaskMember": {"a": -1}},
        {"minMember": 1, "minTaskMember": {"a.b/c": 5}},
        {"minResources": {"cpu": 2, "memory": "1Gi"}},
        {"minResources": {"cpu": "-1"}},
        {"queue": "root"},
        {"networkTopology": {"highestTierAllowed": 1}},
        {"subGroupPolicy": [{"subGroupSize": 2}]},
        {"colour": "red"},
    ],
)
def test_volcano_admits_these_groups(spec: Any) -> None:
    assert group_errors(volcano, spec) == []


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("four", 'spec: Invalid value: "four": must be an object'),
        (
            {"minMember": -1},
            "spec.minMember: Invalid value: -1: must be greater than or equal to 0",
        ),
        ({"minMember": "2"}, 'spec.minMember: Invalid value: "2": must be an integer'),
        ({"minMember": True}, "spec.minMember: Invalid value: True: must be an integer"),
        (
            {"minMember": 2**31},
            "spec.minMember: Invalid value: 2147483648: must be less than or equal to 2147483647",
        ),
        (
            {"minTaskMember": {"a": "b"}},
            'spec.minTaskMember.a: Invalid value: "b": must be an integer',
        ),
        ({"queue": ""}, 'spec.queue: Invalid value: "": must be the name of a queue'),
        ({"queue": 3}, "spec.queue: Invalid value: 3: must be a string"),
        (
            {"networkTopology": {"mode": "firm"}},
            'spec.networkTopology.mode: Unsupported value: "firm": '
            'supported values: "hard", "soft"',
        ),
        (
            {"networkTopology": BOTH_TIERS},
            "spec.networkTopology: must not specify 'highestTierAllowed' and 'highestTierName' "
            "in networkTopology simultaneously.",
        ),
        (
            {
                "subGroupPolicy": [
                    {
                        "name": "g",
                        "networkTopology": {"highestTierAllowed": 1, "highestTierName": "x"},
                    }
                ]
            },
            "spec.subGroupPolicy[0].networkTopology: in subGroupPolicy 'g': must not specify "
            "'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously.",
        ),
        (
            {"subGroupPolicy": [{"name": "g", "subGroupSize": 0}]},
            "spec.subGroupPolicy[0].subGroupSize: Invalid value: 0: "
            "must be greater than or equal to 1",
        ),
        ({"subGroupPolicy": [7]}, "spec.subGroupPolicy[0]: Invalid value: 7: must be an object"),
    ],
)
def test_volcano_refuses_these_groups(spec: Any, error: str) -> None:
    assert group_errors(volcano, spec) == [error]


def test_a_quantity_that_is_none_is_refused_with_its_path() -> None:
    (error,) = group_errors(volcano, {"minResources": {"cpu": "lots"}})
    assert error.startswith("spec.minResources.cpu: Invalid value: \"lots\": 'lots' is no quantity")


def test_a_phase_that_volcano_does_not_know_is_refused() -> None:
    (error,) = group_errors(volcano, {}, status={"phase": "Sleeping"})
    assert error.startswith('status.phase: Unsupported value: "Sleeping"')


def test_every_violation_is_named_at_once() -> None:
    spec = {"minMember": -1, "queue": 3, "minResources": {"cpu": "x", "memory": "y"}}
    errors = group_errors(sigs, spec)
    assert [error.split(":")[0] for error in errors] == [
        "spec.minMember",
        "spec.queue",
        "spec.minResources.cpu",
        "spec.minResources.memory",
    ]


def test_our_own_settings_are_checked_where_they_are_made() -> None:
    candidate = {
        "metadata": {"annotations": {"tutti.dev/hold-seconds": "-3", "other": 1}},
        "spec": {},
    }
    (error,) = incubator.validate("PodGroup", candidate)
    assert error.path == "metadata.annotations[tutti.dev/hold-seconds]"


@pytest.mark.parametrize("dialect", [incubator, sigs, volcano], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("tutti.dev/repair-deadline-seconds", "1.5", "is not a whole number of seconds"),
        ("tutti.dev/preflight", "never", 'is neither "always" nor ""'),
        ("tutti.dev/do-not-disrupt", "yes", 'is neither "true" nor "false"'),
        ("tutti.dev/provisioning-class", "Atomic", "is not the name of a provisioning class"),
        (
            "tutti.dev/provisioning-parameters",
            "noRetry=true,noRetry=false",
            "is not a list of at most 100 parameters with different names, as in "
            '"ValidUntilSeconds=3600,noRetry=true"',
        ),
    ],
)
def test_a_queue_that_gives_its_groups_a_malformed_default_is_refused(
    dialect: Any, key: str, value: str, rule: str
) -> None:
    spec = {"weight": 1}
    assert queue_errors(dialect, spec, {key: value}) == [
        f'metadata.annotations[{key}]: "{value}" {rule}'
    ]
    assert queue_errors(dialect, spec, {key: ""}) == (
        [] if "second" not in key else [f'metadata.annotations[{key}]: "" {rule}']
    )


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"weight": 65535, "priority": 5, "dequeueStrategy": "fifo", "reclaimable": False},
        {"capability": {"cpu": 0}},
        {"capability": {"cpu": 4}, "deserved": {"cpu": "4000m"}},
        {"capability": {"cpu": 4}, "deserved": {"memory": "1Gi"}},
        {"capability": {"cpu": 4}, "deserved": {"cpu": 3}, "guarantee": {"resource": {"cpu": 2}}},
        {"capability": {"example.com/gpu": 4}, "deserved": {"example.com/gpu": 2}},
        {"extendClusters": [{"name": "far", "weight": 2, "capacity": {"cpu": 4}}]},
    ],
)
def test_volcano_admits_these_queues(spec: Any) -> None:
    assert queue_errors(volcano, spec) == []


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"weight": 0}, ["spec.weight: Invalid value: 0: must be greater than or equal to 1"]),
        (
            {"weight": 65536},
            ["spec.weight: Invalid value: 65536: must be less than or equal to 65535"],
        ),
        ({"weight": 1.5}, ["spec.weight: Invalid value: 1.5: must be an integer"]),
        (
            {"reclaimable": "yes"},
            ['spec.reclaimable: Invalid value: "yes": must be true or false'],
        ),
        ({"parent": "trial"}, ["spec.parent: queue trial cannot use itself as parent"]),
        (
            {"capability": {"cpu": "-1"}},
            ['spec.capability.cpu: Invalid value: "-1": must be greater than or equal to 0'],
        ),
        (
            {"capability": {"example.com/gpu": "1500m"}},
            ['spec.capability.example.com/gpu: Invalid value: "1500m": must be an integer'],
        ),
        (
            {
                "capability": {"cpu": 1},
                "deserved": {"cpu": 2},
                "guarantee": {"resource": {"cpu": 3}},
            },
            [
                f"{TOO_MUCH} must be <= capability[cpu]=1",
                f"{TOO_MUCH} must be >= guarantee[cpu]=3",
            ],
        ),
        (
            {"deserved": {"cpu": 2}, "guarantee": {"resource": {"cpu": 1, "memory": "1Gi"}}},
            [
                'spec.deserved.memory: Invalid value: "<nil>": '
                "deserved[memory] must be >= guarantee[memory]=1Gi"
            ],
        ),
    ],
)
def test_volcano_refuses_these_queues(spec: Any, errors: list[str]) -> None:
    assert queue_errors(volcano, spec) == errors


@pytest.mark.parametrize(
    ("path", "weights", "fragments"),
    [
        ("root/sci", "1/2", []),
        ("root/sci", "", ["volcano.sh/hierarchy must have the same length"]),
        ("", "1/2", ["volcano.sh/hierarchy must have the same length"]),
        ("root/sci/dev", "1/2", ["volcano.sh/hierarchy must have the same length"]),
        ("root/sci", "1/0", ["0 in the 1/0 must be larger than 0"]),
        ("root/sci", "1/two", ["two in the 1/two is invalid number"]),
        ("root/sci", "-1/-2", ["-1 in the -1/-2 must be", "-2 in the -1/-2 must be"]),
    ],
)
def test_hierarchy_annotations_must_match(path: str, weights: str, fragments: list[str]) -> None:
    notes = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    errors = queue_errors(volcano, {}, notes)
    assert len(errors) == len(fragments)
    for error, fragment in zip(errors, fragments, strict=True):
        assert fragment in error


def test_an_old_queue_may_weigh_nothing_but_not_less() -> None:
    assert queue_errors(incubator, {"weight": 0}) == []
    assert queue_errors(incubator, {"weight": -1, "capability": {"cpu": "-1"}}) == [
        "spec.weight: Invalid value: -1: must be greater than or equal to 0",
        'spec.capability.cpu: Invalid value: "-1": must be greater than or equal to 0',
    ]


MIN = "volcano.sh/jdb-min-available"
MAX = "volcano.sh/jdb-max-unavailable"


@pytest.mark.parametrize(
    ("notes", "fragment"),
    [
        ({MIN: "1"}, ""),
        ({MIN: "99%"}, ""),
        ({MIN: "5%%"}, ""),
        ({MIN: "0"}, f'invalid value <"0"> for {MIN}, it must be a positive integer'),
        ({MAX: "1.5"}, f'parsing "1.5": invalid syntax for {MAX}'),
        ({MIN: "100%"}, "it must be a valid percentage which between 1% ~ 99%"),
        ({MIN: "%"}, f'parsing "": invalid syntax for {MIN}'),
        ({MIN: "1", MAX: "1"}, "not allow configure multiple annotations"),
        ({"scheduling.k8s.io/group-name": "gang.one"}, ""),
        ({"scheduling.k8s.io/group-name": "Not A Name"}, "must be the name of a PodGroup"),
        ({"scheduling.k8s.io/group-min-member": "4"}, ""),
        ({"scheduling.k8s.io/group-min-member": "many"}, "must be a number of pods"),
    ],
)
def test_annotations_by_which_a_pod_joins_a_gang_are_checked(
    notes: dict[str, str], fragment: str
) -> None:
    candidate = {"metadata": {"annotations": notes}}
    errors = [error for each in by_precedence() for error in each.validate("Pod", candidate)]
    assert len(errors) == (1 if fragment else 0)
    assert fragment in (errors[0].text if errors else "")


@pytest.mark.parametrize("candidate", [{}, {"metadata": []}, {"metadata": None, "spec": None}])
@pytest.mark.parametrize("kind", ["PodGroup", "Queue", "Pod"])
@pytest.mark.parametrize("dialect", dialects(), ids=lambda one: one.name)
def test_no_shape_of_object_breaks_the_checks(dialect: Any, kind: str, candidate: Any) -> None:
    for error in dialect.validate(kind, candidate):
        assert error.path == "metadata"


@pytest.mark.parametrize("odd", [7, "x", [1], True])
def test_amounts_that_are_no_object_are_reported_and_do_not_crash(odd: Any) -> None:
    """Found by fuzzing: a webhook that crashes lets the object pass."""
    good = {"resource": {"cpu": "1"}}
    errors = queue_errors(volcano, {"weight": 1, "deserved": odd, "guarantee": good})
    assert any(error.startswith("spec.deserved: Invalid value") for error in errors)
    errors = queue_errors(volcano, {"deserved": {"cpu": 2}, "capability": odd, "guarantee": odd})
    assert {error.partition(":")[0] for error in errors} == {"spec.capability", "spec.guarantee"}
