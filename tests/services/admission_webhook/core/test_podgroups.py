"""PodGroups of the three groups: validated by their dialects, defaulted, their queue looked at."""

import pytest

from shared.kube.resources import PODGROUPS_INCUBATOR, PODGROUPS_SIGS, PODGROUPS_VOLCANO, Resource
from tests.services.admission_webhook.reviews import (
    Object,
    a_pod_group,
    asked,
    defaulted,
    judged,
    reference_objects,
    review,
    texts,
    volcano_queue,
)
from tests.support.golden import Golden

QUEUES = reference_objects(
    volcano_queue("lane", state="Open"),
    volcano_queue("shut", state="Closed"),
    volcano_queue("trunk", state="Open"),
    volcano_queue("leaf", parent="trunk"),
)
ALL = [PODGROUPS_INCUBATOR, PODGROUPS_SIGS, PODGROUPS_VOLCANO]


@pytest.mark.parametrize("resource", ALL, ids=lambda resource: resource.group)
def test_every_violation_of_a_group_is_reported_at_once(resource: Resource, golden: Golden) -> None:
    group = a_pod_group(resource, minMember="two", priorityClassName=7, queue="lane")
    errors = judged(review(group), QUEUES).errors
    assert [error.path for error in errors] == ["spec.minMember", "spec.priorityClassName"]
    golden(*(error.text for error in errors))


@pytest.mark.parametrize("resource", ALL, ids=lambda resource: resource.group)
def test_a_group_without_queue_gets_the_default(resource: Resource) -> None:
    assert defaulted(a_pod_group(resource, minMember=2))["spec"] == {
        "minMember": 2,
        "queue": "default",
    }
    assert defaulted(a_pod_group(resource, queue="lane"))["spec"] == {"queue": "lane"}


@pytest.mark.parametrize("spec", [None, 4, "x", []], ids=str)
@pytest.mark.parametrize("resource", ALL, ids=lambda resource: resource.group)
def test_a_group_without_usable_spec_gets_nothing(resource: Resource, spec: object) -> None:
    group = a_pod_group(resource) | {"spec": spec}
    assert defaulted(group) == group


def test_an_empty_queue_means_none_to_kube_batch_and_is_wrong_for_volcano(golden: Golden) -> None:
    assert defaulted(a_pod_group(PODGROUPS_SIGS, queue=""))["spec"]["queue"] == "default"
    assert defaulted(a_pod_group(queue=""))["spec"]["queue"] == ""
    (error,) = judged(review(a_pod_group(queue=""))).errors
    assert error.path == "spec.queue"
    golden(error.text)


@pytest.mark.parametrize(
    ("queue", "errors"),
    [
        ("lane", []),
        ("default", []),
        ("root", []),
        ("trunk", []),
        (
            "nowhere",
            [
                'spec.queue: Invalid value: "nowhere": '
                'unable to find queue: queue.scheduling.volcano.sh "nowhere" not found'
            ],
        ),
        (
            "shut",
            [
                'spec.queue: Invalid value: "shut": can only submit PodGroup to queue with state '
                "`Open`, queue `shut` status is `Closed`"
            ],
        ),
    ],
)
def test_a_volcano_group_needs_a_queue_that_takes_it(queue: str, errors: list[str]) -> None:
    assert texts(a_pod_group(queue=queue), QUEUES) == errors
    assert texts(a_pod_group(PODGROUPS_INCUBATOR, queue=queue), QUEUES) == []


def test_updates_are_looked_at_for_kube_batch_and_left_alone_for_volcano() -> None:
    def errors(resource: Resource) -> list[str]:
        new, old = a_pod_group(resource, minMember=-1), a_pod_group(resource, minMember=1)
        return texts(new, QUEUES, old=old)

    assert errors(PODGROUPS_VOLCANO) == []
    assert errors(PODGROUPS_SIGS) == errors(PODGROUPS_INCUBATOR) != []


def test_a_status_subresource_is_not_looked_at() -> None:
    group = a_pod_group(PODGROUPS_SIGS, minMember=-1)
    body = review(group, old=a_pod_group(PODGROUPS_SIGS), subResource="status")
    assert asked(body) is None


def test_without_queues_a_group_passes_with_a_word_about_it() -> None:
    verdict = judged(review(a_pod_group(queue="nowhere")), reference_objects(known=False))
    assert verdict.allowed
    assert len(verdict.warnings) == 1


ANYTHING: list[Object] = [
    {"spec": {"minMember": True}},
    {"spec": {"minMember": 1.5}},
    {"spec": "no"},
    {"metadata": {"name": "x", "annotations": {"tutti.dev/hold-seconds": "soon"}}},
    {"metadata": "no"},
]


@pytest.mark.parametrize("part", ANYTHING, ids=str)
def test_a_wrong_type_is_a_violation_with_its_path(part: Object) -> None:
    (error,) = judged(review(a_pod_group() | part, resource=PODGROUPS_VOLCANO, name="x")).errors
    assert error.path.startswith(("spec", "metadata"))
