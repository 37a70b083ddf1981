"""Pods: ours by their scheduler's name, and only their annotations."""

from typing import Any

import msgspec
import pytest

from shared.admission.admission import apply_defaults
from shared.kube.resources import PODGROUPS_SIGS, PODS
from tests.services.admission_webhook.reviews import (
    Object,
    a_job,
    a_pod,
    a_pod_group,
    a_task,
    asked,
    judged,
    reference_objects,
    review,
    texts,
)
from tests.support.golden import Golden

GROUP = "scheduling.k8s.io/group-name"
SIZE = "scheduling.k8s.io/group-min-member"
MIN_AVAILABLE = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
UNREAD = "pod-group.scheduling.sigs.k8s.io"
GODEL = "godel.bytedance.com/pod-group-name"


@pytest.mark.parametrize("scheduler", ["kai-scheduler", "", "tutti2"])
def test_a_pod_of_another_scheduler_is_not_ours_whatever_it_says(scheduler: str) -> None:
    assert asked(review(a_pod(scheduler, {GROUP: "Not Valid"}))) is None


@pytest.mark.parametrize(
    "notes",
    [{}, {GROUP: "a.b-c"}, {SIZE: "8"}, {MIN_AVAILABLE: "25%"}, {"other": "Not Valid"}],
    ids=str,
)
def test_a_pod_of_ours_is_admitted_with(notes: dict[str, str]) -> None:
    assert texts(a_pod("kube-batch", notes)) == []


@pytest.mark.parametrize(
    ("notes", "fragments"),
    [
        ({GROUP: "Not_Valid"}, ["must be the name of a PodGroup"]),
        ({SIZE: "-1"}, ["must be a number of pods"]),
        ({MIN_AVAILABLE: "0"}, ["must be a positive integer"]),
        ({MIN_AVAILABLE: "1", MAX_UNAVAILABLE: "1"}, ["not allow configure multiple annotations"]),
        ({GROUP: "-", SIZE: "x"}, ["the name of a PodGroup", "a number of pods"]),
    ],
    ids=str,
)
def test_a_pod_of_ours_is_refused_for(notes: dict[str, str], fragments: list[str]) -> None:
    errors = texts(a_pod("volcano", notes))
    assert len(errors) == len(fragments)
    for error, fragment in zip(errors, fragments, strict=True):
        assert error.startswith("metadata.annotations")
        assert fragment in error


@pytest.mark.parametrize(
    ("part", "paths"),
    [
        ({"annotations": {GROUP: 5}}, []),
        ({"annotations": ["a"]}, ["metadata.annotations"]),
        ({"annotations": None}, []),
    ],
    ids=str,
)
def test_annotations_of_the_wrong_type_are_no_crash(part: Object, paths: list[str]) -> None:
    pod: dict[str, Any] = a_pod()
    pod["metadata"] |= part
    assert [error.path for error in judged(review(pod)).errors] == paths


def test_a_pod_gets_no_defaults_and_a_binding_is_none_of_our_business() -> None:
    found = asked(review(a_pod()))
    assert found is not None
    assert apply_defaults(found).patch == ()
    assert asked(review(a_pod(), resource=PODS, subResource="binding")) is None


def with_label(pod: Object, key: str) -> Object:
    pod["metadata"]["labels"] = {key: "g"}
    return pod


def test_a_pod_with_a_gang_mark_that_is_not_read_is_admitted_with_a_warning() -> None:
    for pod, mark in (
        (with_label(a_pod(), UNREAD), f"label {UNREAD}"),
        (a_pod("tutti", {GODEL: "g"}), GODEL),
    ):
        (warning,) = judged(review(pod)).warnings
        assert warning.startswith("tutti: not bound: ")
        assert mark in warning
        assert len(warning) <= 256, "the API server cuts the rest"
    native = a_pod()
    native["spec"]["workloadRef"] = {"name": "w"}
    assert "spec.workloadRef" in judged(review(native)).warnings[0]


def test_a_pod_that_names_two_gangs_is_admitted_with_a_warning() -> None:
    (warning,) = judged(review(with_label(a_pod("tutti", {GROUP: "h"}), UNREAD))).warnings
    assert "name two gangs" in warning


def test_a_pod_of_a_gang_that_names_the_default_scheduler_is_admitted_with_a_warning(
    golden: Golden,
) -> None:
    verdict = judged(review(a_pod("default-scheduler", {GROUP: "g"})))
    (warning,) = verdict.warnings
    golden(warning)
    assert texts(a_pod("default-scheduler", {GROUP: "Not Valid"})) == [], "not ours to validate"
    assert asked(review(a_pod("default-scheduler"))) is None
    native = a_pod("default-scheduler")
    native["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    assert asked(review(native)) is None, "kube-scheduler reads it"


def test_no_warning_about_the_scheduler_of_a_pod_that_a_controller_creates() -> None:
    pod = a_pod("default-scheduler", {GROUP: "g"})
    pod["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "controller": True}]
    assert judged(review(pod)).warnings == ()


def test_a_volcano_job_is_warned_of_marks_in_its_templates_once() -> None:
    template = {"metadata": {"labels": {UNREAD: "g"}}, "spec": a_pod()["spec"]}
    tasks = [a_task(name, template=template) for name in ("ps", "worker")]
    (warning,) = judged(review(a_job(*tasks))).warnings
    assert UNREAD in warning


def test_plain_pods_and_jobs_are_admitted_without_a_word() -> None:
    assert judged(review(a_pod("tutti", {GROUP: "g"}))).warnings == ()
    assert judged(review(a_job(a_task()))).warnings == ()


@pytest.mark.parametrize("name", ["tuti", "tutty", "tutit", "kubebatch", "volcanoo", "volcan"])
def test_a_pod_whose_scheduler_name_is_one_slip_from_ours_gets_a_warning(name: str) -> None:
    (warning,) = judged(review(a_pod(name, {GROUP: "Not Valid"}))).warnings
    assert f'schedulerName "{name}" is not served by Tutti (did you mean' in warning
    assert texts(a_pod(name, {GROUP: "Not Valid"})) == [], "it is another scheduler's"


@pytest.mark.parametrize("name", ["default-scheduler", "tutti2", "kai-scheduler", "yunikorn", "t"])
def test_other_schedulers_names_are_no_slips(name: str) -> None:
    assert asked(review(a_pod(name))) is None


def test_a_volcano_job_with_a_scheduler_name_that_was_meant_to_be_ours_gets_a_warning() -> None:
    verdict = judged(review(a_job(a_task(), schedulerName="tuti")))
    assert verdict.errors == ()
    assert 'did you mean "tutti"' in verdict.warnings[0]


def test_a_priority_class_that_does_not_exist_gets_a_warning() -> None:
    known = msgspec.structs.replace(reference_objects(), priority_classes=frozenset({"high"}))
    for made in (
        a_job(a_task(), priorityClassName="highs"),
        a_pod_group(minMember=1, priorityClassName="highs", queue="default"),
        a_pod_group(PODGROUPS_SIGS, minMember=1, priorityClassName="highs"),
    ):
        (warning,) = judged(review(made), known).warnings
        assert 'no PriorityClass "highs" (did you mean "high"?)' in warning
        assert judged(review(made), reference_objects()).warnings == (), "the classes are not known"
    good = a_job(a_task(), priorityClassName="high")
    assert judged(review(good), known).warnings == ()
