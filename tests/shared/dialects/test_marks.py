"""Marks by which pods declare a gang in another API: each is read by a dialect or refused."""

from typing import Any

import msgspec
import pytest

from shared.contracts import annotations
from shared.dialects.discovery import dialects
from shared.dialects.marks import MARKS, Mark, Table, unread
from shared.kube import objects as kube
from shared.model.objects import GANG_PREFIX
from tests.shared.dialects.reading import CONTEXT, decoded, pod, shape_of

FIELDS = {
    "spec.schedulingGroup": {"schedulingGroup": {"podGroupName": "g"}},
    "spec.workloadRef": {"workloadRef": {"name": "g", "podGroup": "workers"}},
}


def marked(mark: Mark, **more: Any) -> dict[str, Any]:
    """The arguments of `pod` for one with this mark, which names "g"."""
    notes = more.pop("annotations", {})
    if mark.place == "field":
        return {"spec": FIELDS[mark.key], "annotations": notes, **more}
    if mark.place == "label":
        return {"labels": {mark.key: "g"}, "annotations": notes, **more}
    return {"annotations": {mark.key: "g", **notes}, **more}


def unsupported(**given: Any) -> tuple[str, ...]:
    """What of the pod is not judged."""
    spec = {"schedulerName": "tutti", **given.pop("spec", {})}
    return shape_of(pod(spec, **given)).unsupported


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.title)
def test_a_mark_is_read_by_a_dialect_that_exists_or_its_pod_is_refused(mark: Mark) -> None:
    if mark.read_by is not None:
        assert mark.read_by in {dialect.NAME for dialect in dialects()}
    # Without the kinds of any dialect nothing is read.
    (refused,) = unsupported(**marked(mark))
    assert refused.startswith(GANG_PREFIX)
    assert mark.title in refused
    assert mark.declared_by in refused
    assert annotations.GROUP_NAME in refused, "the remedy is named"


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.title)
def test_the_gang_that_the_pod_also_names_where_it_is_read_is_no_objection(mark: Mark) -> None:
    refused = unsupported(**marked(mark, annotations={annotations.GROUP_NAME: "g"}))
    assert bool(refused) is not mark.names_gang


@pytest.mark.parametrize(
    "mark", [mark for mark in MARKS if mark.names_gang], ids=lambda mark: mark.title
)
def test_a_pod_that_names_two_gangs_is_refused(mark: Mark) -> None:
    (refused,) = unsupported(**marked(mark, annotations={annotations.GROUP_NAME: "other"}))
    assert "name two gangs" in refused
    assert mark.title in refused


def test_pods_of_other_schedulers_are_not_looked_at() -> None:
    label = {MARKS[0].key: "g"}
    assert unsupported(spec={"schedulerName": "default-scheduler"}, labels=label) == ()


@pytest.mark.parametrize(
    "given",
    [
        {"labels": {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": "high"}},
        {"labels": {"kai.scheduler/queue": "team", "spark-app-selector": "spark-1"}},
        {"labels": {"applicationId": "a", "yunikorn.apache.org/queue": "root.a"}},
        {"annotations": {"yunikorn.apache.org/app-id": "a"}},
        {"labels": {"scheduling.x-k8s.io/pod-group": ""}},
    ],
)
def test_a_queue_or_an_application_declares_no_gang(given: dict[str, Any]) -> None:
    assert unsupported(**given) == ()


def test_a_reference_of_a_later_version_is_refused_as_well() -> None:
    (refused,) = unsupported(spec={"schedulingGroup": {"compositePodGroupName": "g"}})
    assert "spec.schedulingGroup" in refused


def test_a_mark_counts_as_read_only_while_its_dialect_is_served() -> None:
    table = Table((msgspec.structs.replace(MARKS[0], read_by="coscheduling"),))
    found = decoded(
        kube.Pod,
        {"metadata": {"name": "p", "namespace": "t", "uid": "u", "labels": {MARKS[0].key: "g"}}},
    )
    assert unread(found.metadata, found.spec, {"coscheduling"}, table) == ()
    assert len(unread(found.metadata, found.spec, set(), table)) == 1


def test_members_of_one_gang_share_a_shape_and_gangs_do_too() -> None:
    shapes = {
        pod({"schedulerName": "tutti"}, labels={MARKS[0].key: name}, context=CONTEXT).shape
        for name in ("a", "b")
    }
    assert len(shapes) == 1
