"""Stored objects before the webhook's rules."""

from typing import Any

from shared.kube.resources import JOBS_VOLCANO, QUEUES_VOLCANO, Resource
from tutti.migrate.cluster_facts import Refused
from tutti.migrate.cluster_reader import find_refused

StoredObject = tuple[Resource, dict[str, Any]]


def queue(name: str, **fields: Any) -> StoredObject:
    body = {"metadata": {"name": name, "uid": f"uid-{name}"}, **fields}
    return QUEUES_VOLCANO, body


def job(name: str, **spec: Any) -> StoredObject:
    task = {
        "replicas": 2,
        "template": {"spec": {"containers": [{"name": "main", "image": "registry.example/none"}]}},
    }
    body = {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"schedulerName": "volcano", "minAvailable": 1, "tasks": [task], **spec},
    }
    return JOBS_VOLCANO, body


def judged(*objects: StoredObject) -> list[Refused]:
    return list(find_refused(objects, ("volcano",)))


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
    assert found.name == "team/bad"
    assert len(found.errors) >= 2
    assert any("nowhere" in error for error in found.errors)


def test_a_queue_that_cannot_be_read_is_named_and_does_not_hide_the_others() -> None:
    broken = queue("broken", spec={"weight": "heavy"})
    fine = queue("fine", spec={"weight": 1}, status={"state": "Open"})
    found = judged(broken, fine, job("train", queue="fine"))
    assert [one.name for one in found] == ["broken"]


def test_jobs_of_another_scheduler_are_not_judged() -> None:
    assert judged(job("foreign", schedulerName="other", minAvailable=9)) == []
