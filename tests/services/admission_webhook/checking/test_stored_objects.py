"""Stored objects before the webhook's rules."""

from typing import Any

from services.admission_webhook.checking.__main__ import (
    Objection,
    Question,
    StoredObject,
    objections,
)

SCHEDULING = "scheduling.volcano.sh"


def queue(name: str, **fields: Any) -> StoredObject:
    body = {"metadata": {"name": name, "uid": f"uid-{name}"}, **fields}
    return StoredObject(group=SCHEDULING, plural="queues", body=body)


def job(name: str, **spec: Any) -> StoredObject:
    task = {
        "replicas": 2,
        "template": {"spec": {"containers": [{"name": "main", "image": "registry.example/none"}]}},
    }
    body = {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"schedulerName": "volcano", "minAvailable": 1, "tasks": [task], **spec},
    }
    return StoredObject(group="batch.volcano.sh", plural="jobs", body=body)


def judged(*objects: StoredObject) -> list[Objection]:
    return objections(Question(scheduler_names=("volcano",), objects=objects))


def test_what_would_be_taken_again_is_not_named() -> None:
    good = queue("research", spec={"weight": 1}, status={"state": "Open"})
    assert judged(good, job("train", queue="research"), job("plain")) == []


def test_defaults_come_before_the_rules() -> None:
    """A task without a name gets one from the webhook: its rule must not refuse it."""
    assert judged(job("train")) == []
    (found,) = judged(job("train", minAvailable=3))
    assert "minAvailable" in found.errors[0]


def test_every_reason_is_reported_with_the_place_of_the_object() -> None:
    (found,) = judged(job("good"), job("bad", queue="nowhere", minAvailable=3))
    assert found.index == 1
    assert len(found.errors) >= 2
    assert any("nowhere" in error for error in found.errors)


def test_a_queue_that_cannot_be_read_is_named_and_does_not_hide_the_others() -> None:
    broken = queue("broken", spec={"weight": "heavy"})
    fine = queue("fine", spec={"weight": 1}, status={"state": "Open"})
    assert [one.index for one in judged(broken, fine, job("train", queue="fine"))] == [0]


def test_jobs_of_another_scheduler_are_not_judged() -> None:
    assert judged(job("foreign", schedulerName="other", minAvailable=9)) == []
