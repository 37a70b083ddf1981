"""Plain pod groups of Kueue."""

from typing import Any

import pytest

from shared.model.objects import Pod
from tests.shared.dialects.reading import pod, shape_of

GROUP = "kueue.x-k8s.io/pod-group-name"
TOTAL = "kueue.x-k8s.io/pod-group-total-count"


def member(total: str | None = "3", labels: Any = None, **notes: str) -> Pod:
    annotations = {**notes, **({} if total is None else {TOTAL: total})}
    found = labels if labels is not None else {GROUP: "train"}
    return pod({"schedulerName": "tutti"}, labels=found, annotations=annotations)


def test_label_and_total_count_declare_the_whole_group() -> None:
    found = member()
    group = found.declared_group
    assert group is not None
    assert (found.group_name, found.group_scope, found.group_self_declared) == (
        "train",
        "kueue",
        True,
    )
    assert (group.uid, group.dialect, group.namespace, group.name, group.scope) == (
        "",
        "kueue",
        "team",
        "train",
        "kueue",
    )
    assert (group.min_member, group.errors) == (3, ())
    assert shape_of(found).unsupported == ()
    assert found.declared_group is member().declared_group, "equal pods share it"


def test_an_annotation_may_name_the_group_too() -> None:
    assert member(labels={}, **{GROUP: "train"}).group_name == "train"


@pytest.mark.parametrize("total", [None, "", "0", "-1", "three", "9" * 30])
def test_a_group_without_a_number_is_not_planned(total: str | None) -> None:
    group = member(total).declared_group
    assert group is not None
    (error,) = group.errors
    assert TOTAL in error


def test_settings_and_queue_of_the_pods_count_as_those_of_a_group() -> None:
    found = member(**{"scheduling.volcano.sh/queue-name": "q", "tutti.dev/hold-seconds": "5"})
    group = found.declared_group
    assert group is not None
    assert (group.queue, group.settings) == ("q", (("tutti.dev/hold-seconds", "5"),))


def test_a_group_of_another_api_counts_before_it_whatever_its_name() -> None:
    found = member(**{"scheduling.k8s.io/group-name": "other"})
    assert (found.group_name, found.group_scope, found.declared_group) == ("other", "name", None)
    assert shape_of(found).unsupported == ()
