"""Run limits: refused if they are no durations, or if the queue does not allow them."""

from typing import Any

import pytest

from shared.admission.kinds import BY_RESOURCE
from shared.contracts.annotations import OWNER_RUN_LIMIT, QUEUE_NAME, RUN_LIMIT, RUN_LIMIT_MAX
from shared.dialects.kubebatch_fields import read_queue
from shared.dialects.run_limits import KUEUE, SLURM
from shared.kinds.queue import Queue as StoredQueue
from shared.kube.resources import (
    JOBS_BATCH,
    PODGROUPS_SIGS,
    PODGROUPS_VOLCANO,
    QUEUES_SIGS,
    QUEUES_VOLCANO,
    TRAINING_JOBS,
    Resource,
)
from shared.model.objects import Queue
from tests.services.admission_webhook.reviews import (
    Object,
    a_job,
    a_pod,
    a_pod_group,
    a_queue,
    a_task,
    judged,
    reference_objects,
    review,
    texts,
)
from tests.shared.dialects.reading import decoded
from tests.support.golden import Golden

PATH = f"metadata.annotations[{RUN_LIMIT}]"
MAX = f"metadata.annotations[{RUN_LIMIT_MAX}]"
NOT_POSITIVE = 'is not a positive duration, as in "90m", "4h30m" or "5400"'


def queue(name: str, parent: str = "", **notes: str) -> Queue:
    """A queue as the watcher publishes it."""
    keys = {"usual": RUN_LIMIT, "most": RUN_LIMIT_MAX}
    metadata = {"name": name, "annotations": {keys[key]: text for key, text in notes.items()}}
    stored = decoded(StoredQueue, {"metadata": metadata, "spec": {"parent": parent}})
    return read_queue(stored, dialect="volcano")


#: root allows a day, trunk 4 hours; leaf inherits that, short sets less, and free more.
KNOWN = reference_objects(
    queue("root", most="24h"),
    queue("trunk", most="4h"),
    queue("leaf", "trunk"),
    queue("short", "trunk", most="60m", usual="30m"),
    queue("free", "trunk", most="10h"),
    queue("other"),
)
NO_MAXIMUM = reference_objects(queue("lane"), queue("usual", usual="2h"))


def with_limit(candidate: Object, text: object) -> Object:
    notes = {} if text is None else {RUN_LIMIT: text}
    metadata = {**candidate["metadata"], "annotations": notes}
    return {**candidate, "metadata": metadata}


def group(text: object, queue_name: str = "leaf") -> Object:
    return with_limit(a_pod_group(queue=queue_name, minMember=1), text)


def job(text: object, queue_name: str = "leaf") -> Object:
    return with_limit(a_job(a_task(), queue=queue_name, minAvailable=1), text)


def of_kube_batch(text: object, queue_name: str = "leaf") -> Object:
    return with_limit(a_pod_group(PODGROUPS_SIGS, queue=queue_name), text)


MAKERS: pytest.MarkDecorator = pytest.mark.parametrize("make", [group, job, of_kube_batch])


def above(text: str, most: str, name: str) -> str:
    return f'{PATH}: Invalid value: "{text}": must be at most "{most}", {MAX} of queue `{name}`'


@MAKERS
@pytest.mark.parametrize("text", ["soon", "-5m", "0", "", "2d"])
def test_a_limit_that_is_no_duration_is_refused_at_creation_and_later(make: Any, text: str) -> None:
    words = [f'{PATH}: "{text}" {NOT_POSITIVE}']
    assert texts(make(text), KNOWN) == words
    assert set(words) <= set(texts(make(text), KNOWN, old=make("1h")))
    assert texts(make(text), KNOWN, old=make(text)) == []


@MAKERS
@pytest.mark.parametrize(
    ("text", "name", "errors"),
    [
        ("4h", "leaf", []),
        ("4h1s", "leaf", [above("4h1s", "4h", "trunk")]),
        ("2h", "short", [above("2h", "60m", "short")]),
        ("9h", "free", []),
        ("25h", "other", [above("25h", "24h", "root")]),
        ("25h", "default", [above("25h", "24h", "root")]),
        ("9" * 30, "free", [above("9" * 30, "10h", "free")]),
    ],
)
def test_the_maximum_is_that_of_the_nearest_queue(
    make: Any, text: str, name: str, errors: list[str]
) -> None:
    assert texts(make(text, name), KNOWN) == errors
    assert texts(make(text, name), reference_objects(known=False)) == []


@MAKERS
@pytest.mark.parametrize(
    ("before", "after", "name", "errors"),
    [
        ("3h", "1h", "leaf", []),
        ("3h", "180m", "leaf", []),
        ("1h", "3h", "leaf", []),
        (None, "3h", "leaf", []),
        ("3h", "5h", "leaf", [above("5h", "4h", "trunk")]),
        # Stored while the queue allowed it.
        ("9h", "8h", "leaf", []),
        # Without it, the queue's default counts, else its maximum.
        ("30m", None, "short", []),
        ("3h", None, "leaf", []),
        (None, "5h", "leaf", [above("5h", "4h", "trunk")]),
    ],
)
def test_a_change_to_a_longer_limit_needs_a_maximum_that_allows_it(
    make: Any, before: object, after: object, name: str, errors: list[str]
) -> None:
    assert texts(make(after, name), KNOWN, old=make(before, name)) == errors


def test_without_a_maximum_no_queue_allows_a_longer_limit(golden: Golden) -> None:
    for make in (group, job, of_kube_batch):
        assert texts(make("99h", "lane"), NO_MAXIMUM) == []
        assert texts(make("1h", "lane"), NO_MAXIMUM, old=make("2h", "lane")) == []
        # The default of the queue is the limit of a gang that states none.
        assert texts(make("1h", "usual"), NO_MAXIMUM, old=make(None, "usual")) == []
        for name, before in (("lane", "1h"), ("usual", None)):
            old = make(before, name)
            golden(*texts(make("3h", name), NO_MAXIMUM, old=old))


def marked(make: Any, marks: Object, name: str = "lane") -> Object:
    """A group or a Job with these annotations and labels."""
    made: Object = make(None, name)
    labels = {KUEUE: marks[KUEUE]} if KUEUE in marks else {}
    notes = {key: text for key, text in marks.items() if key != KUEUE}
    return {**made, "metadata": {**made["metadata"], "annotations": notes, "labels": labels}}


@pytest.mark.parametrize("key", [OWNER_RUN_LIMIT, SLURM, KUEUE])
def test_no_other_mark_of_an_existing_group_grows_without_a_maximum(
    key: str, golden: Golden
) -> None:
    short, long = {key: "600"}, {key: "60000"}
    for later in (long, {}):
        refused = [
            texts(marked(make, later), NO_MAXIMUM, old=marked(make, short))
            for make in (group, job, of_kube_batch)
        ]
        golden(*refused[0])
        assert refused[1:] == [refused[0]] * 2
    assert texts(marked(group, short), NO_MAXIMUM, old=marked(group, long)) == []
    assert texts(marked(group, long, "leaf"), KNOWN, old=marked(group, short, "leaf")) == []
    # Another mark states the smallest before and after.
    both = [marked(group, {**marks, RUN_LIMIT: "1m"}) for marks in (short, long)]
    assert texts(both[1], NO_MAXIMUM, old=both[0]) == []


def test_without_a_queues_default_the_only_limit_is_not_removed(golden: Golden) -> None:
    golden(*texts(group(None, "lane"), NO_MAXIMUM, old=group("1h", "lane")))
    odd = group("1h", "lane") | {"metadata": {"name": "g", "annotations": [], "labels": 7}}
    assert "may not be removed" in texts(odd, NO_MAXIMUM, old=group("1h", "lane"))[-1]


def test_other_updates_of_a_volcano_group_are_left_alone() -> None:
    new = group("1h", "nowhere") | {"spec": {"minMember": -1, "queue": "nowhere"}}
    assert texts(new, KNOWN, old=group("1h", "nowhere")) == []


def test_the_templates_of_a_job_are_checked_at_its_creation() -> None:
    tasks = [a_task(name) for name in ("a", "b", "c")]
    for task, text in zip(tasks, ("soon", "5h", "1h"), strict=True):
        task["template"]["metadata"] = {"annotations": {RUN_LIMIT: text}}
    where = "spec.tasks[{}].template.{}"
    assert texts(a_job(*tasks, queue="leaf"), KNOWN) == [
        f'{where.format(0, PATH)}: "soon" {NOT_POSITIVE}',
        where.format(1, above("5h", "4h", "trunk")),
    ]


def test_a_pod_is_checked_against_the_queue_that_it_names() -> None:
    assert texts(a_pod(annotations={RUN_LIMIT: "soon"})) == [f'{PATH}: "soon" {NOT_POSITIVE}']
    long = {RUN_LIMIT: "5h"}
    assert texts(a_pod(annotations={**long, QUEUE_NAME: "leaf"}), KNOWN) == [
        above("5h", "4h", "trunk")
    ]
    assert texts(a_pod(annotations={**long, QUEUE_NAME: "free"}), KNOWN) == []


@pytest.mark.parametrize("resource", [QUEUES_VOLCANO, QUEUES_SIGS], ids=lambda kind: kind.group)
def test_a_queue_with_a_malformed_limit_is_refused(resource: Resource) -> None:
    candidate = a_queue("new", resource, weight=1)
    candidate["metadata"]["annotations"] = {RUN_LIMIT: "0", RUN_LIMIT_MAX: "0"}
    assert texts(candidate, KNOWN) == [f'{MAX}: "0" {NOT_POSITIVE}']


def test_the_author_of_a_workload_learns_that_its_group_would_be_refused(golden: Golden) -> None:
    workload = with_limit(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {
                "template": {
                    "metadata": {"annotations": {QUEUE_NAME: "leaf"}},
                    "spec": {"schedulerName": "tutti", "containers": [{"name": "c"}]},
                }
            },
        },
        "5h",
    )
    verdict = judged(review(workload, resource=JOBS_BATCH), KNOWN)
    golden(*verdict.warnings)
    allowed = with_limit(workload, "3h")
    assert judged(review(allowed, resource=JOBS_BATCH), KNOWN).warnings == ()


def test_the_queue_of_a_training_job_is_that_of_its_scheduling_policy() -> None:
    (torch,) = (each for each in TRAINING_JOBS if each.kind == "PyTorchJob")
    replicas = {"Worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "c"}]}}}}
    policy = {"runPolicy": {"schedulingPolicy": {"queue": "leaf"}}}
    spec = {**policy, "pytorchReplicaSpecs": replicas}
    workload: Object = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "j"},
        "spec": spec,
    }
    (warning,) = judged(review(with_limit(workload, "5h"), resource=torch), KNOWN).warnings
    assert above("5h", "4h", "trunk") in warning
    assert not judged(review(with_limit(workload, "3h"), resource=torch), KNOWN).warnings


def test_updates_of_volcanos_groups_are_sent_only_when_the_limit_changes() -> None:
    rules = BY_RESOURCE[PODGROUPS_VOLCANO.group, PODGROUPS_VOLCANO.plural]
    assert rules.operations == ("CREATE", "UPDATE")
    ((_, expression),) = rules.conditions(("tutti",))
    for key in (RUN_LIMIT, OWNER_RUN_LIMIT, SLURM):
        assert f"'{key}' in object.metadata.annotations" in expression
    assert f"'{KUEUE}' in object.metadata.labels" in expression
