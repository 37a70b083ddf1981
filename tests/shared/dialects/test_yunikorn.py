"""Task groups of YuniKorn."""

import json
from typing import Any

import pytest

from shared.model.objects import Pod
from tests.shared.dialects.reading import pod, shape_of

GROUPS = "yunikorn.apache.org/task-groups"
GROUP = "yunikorn.apache.org/task-group-name"
PARAMETERS = "yunikorn.apache.org/schedulingPolicyParameters"
RESERVE = "tutti.dev/reserve-seconds"
DEADLINE = "tutti.dev/placement-deadline-seconds"
TWO = [
    {"name": "driver", "minMember": 1, "minResource": {"cpu": "1", "memory": "2Gi"}},
    {"name": "executor", "minMember": 3, "minResource": {"cpu": "500m", "nvidia.com/gpu": 1}},
]


def first(groups: Any = TWO, labels: Any = None, **notes: str) -> Pod:
    """The first pod of an application."""
    text = groups if isinstance(groups, str) else json.dumps(groups)
    return pod(
        {"schedulerName": "tutti"},
        labels=labels if labels is not None else {"applicationId": "spark-1"},
        annotations={GROUPS: text, GROUP: "driver", **notes},
    )


def test_the_sum_of_all_task_groups_is_needed_before_the_first_pod_is_placed() -> None:
    found = first()
    group = found.declared_group
    assert group is not None
    assert (found.group_name, found.group_scope, found.role) == ("spark-1", "yunikorn", "driver")
    assert (group.min_member, group.errors) == (1, ())
    assert group.min_resources == (("cpu", 2500), ("memory", 2 << 30), ("nvidia.com/gpu", 3))
    assert group.settings == ((RESERVE, "900"),)
    assert shape_of(found).unsupported == ()


def test_other_pods_of_the_application_only_name_their_group() -> None:
    found = pod(
        {"schedulerName": "tutti"},
        labels={"yunikorn.apache.org/app-id": "spark-1"},
        annotations={GROUP: "executor"},
    )
    assert (found.group_name, found.role, found.declared_group) == ("spark-1", "executor", None)
    assert not found.group_self_declared


@pytest.mark.parametrize(
    ("labels", "notes", "name"),
    [
        ({"yunikorn.apache.org/app-id": "a", "spark-app-selector": "b"}, {}, "a"),
        ({"spark-app-selector": "b", "applicationId": "c"}, {}, "b"),
        ({}, {"yunikorn.apache.org/app-id": "d"}, "d"),
    ],
)
def test_the_application_is_named_by_the_first_of_its_keys(
    labels: dict[str, str], notes: dict[str, str], name: str
) -> None:
    assert first(labels=labels, **notes).group_name == name


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("placeholderTimeoutInSeconds=30 gangSchedulingStyle=Soft", "30"),
        ("gangSchedulingStyle=Soft", "900"),
        ("placeholderTimeoutInSeconds=soon", "900"),
    ],
)
def test_the_timeout_of_placeholders_is_how_long_the_rest_is_reserved(
    text: str, seconds: str
) -> None:
    group = first(**{PARAMETERS: text}).declared_group
    assert group is not None
    assert group.settings == ((RESERVE, seconds),)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("gangSchedulingStyle=Hard", "900"),
        ("placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard", "30"),
    ],
)
def test_the_style_hard_makes_the_timeout_a_deadline(text: str, seconds: str) -> None:
    group = first(**{PARAMETERS: text}).declared_group
    assert group is not None
    assert group.settings == ((DEADLINE, seconds), (RESERVE, seconds))


@pytest.mark.parametrize(
    ("labels", "notes", "queue"),
    [
        ({"yunikorn.apache.org/queue": "root.team.a", "queue": "root.b"}, {}, "team.a"),
        ({"queue": "root.b"}, {"yunikorn.apache.org/queue": "root.c"}, "b"),
        ({}, {"yunikorn.apache.org/queue": "root.Ads_team"}, "ads-team"),
        ({"queue": "sandbox"}, {}, "sandbox"),
        ({"queue": "root"}, {}, ""),
        ({"queue": "root.b"}, {"scheduling.volcano.sh/queue-name": "mine"}, "mine"),
        ({}, {}, ""),
    ],
)
def test_the_path_of_a_queue_names_the_queue_that_it_is_converted_to(
    labels: dict[str, str], notes: dict[str, str], queue: str
) -> None:
    group = first(labels={"applicationId": "spark-1", **labels}, **notes).declared_group
    assert group is not None
    assert group.queue == queue


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ("{", "task-groups"),
        ([{"name": "w", "minMember": "many"}], "task-groups"),
        ([{"name": "w", "minMember": -1}], "negative"),
        ([{"name": "w", "minMember": 1, "minResource": {"cpu": "much"}}], "cpu"),
    ],
)
def test_malformed_task_groups_are_reported(groups: Any, words: str) -> None:
    group = first(groups).declared_group
    assert group is not None
    (error,) = group.errors
    assert words in error


def test_task_groups_without_an_application_are_not_planned() -> None:
    group = first(labels={}).declared_group
    assert group is not None
    assert "app-id" in group.errors[0]
