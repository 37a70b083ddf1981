"""What Volcano Jobs get that they do not say."""

from typing import Any

import pytest

from tests.services.admission_webhook.reviews import (
    Object,
    a_job,
    a_task,
    asked,
    defaulted,
    reference_objects,
    review,
)


def test_a_minimal_job_gets_queue_scheduler_retries_names_and_minima() -> None:
    job = a_job({"replicas": 1}, {"replicas": 2, "name": "lead"})
    assert defaulted(job)["spec"] == {
        "queue": "default",
        "schedulerName": "volcano",
        "maxRetry": 3,
        "minAvailable": 3,
        "tasks": [
            {"replicas": 1, "name": "default0", "maxRetry": 3, "minAvailable": 1},
            {"replicas": 2, "name": "lead", "maxRetry": 3, "minAvailable": 2},
        ],
    }


def test_what_the_user_said_stays() -> None:
    job = a_job(
        a_task(replicas=4, minAvailable=1, maxRetry=5),
        minAvailable=2,
        queue="field",
        schedulerName="tutti",
        maxRetry=7,
    )
    assert defaulted(job) == job


@pytest.mark.parametrize(
    ("spec", "minimum"),
    [
        pytest.param({"minAvailable": 0}, 5, id="an explicit 0 counts as none"),
        pytest.param({"minAvailable": None}, 5, id="null counts as none"),
        pytest.param({"minAvailable": 1}, 1, id="given"),
        pytest.param({"minAvailable": "2"}, "2", id="of the wrong type, for others to refuse"),
    ],
)
def test_the_jobs_minimum_is_the_sum_of_its_tasks(spec: Object, minimum: Any) -> None:
    job = a_job(a_task("a", 4, minAvailable=2), a_task("b", 3), **spec)
    assert defaulted(job)["spec"]["minAvailable"] == minimum


@pytest.mark.parametrize(
    ("task", "minimum"),
    [
        pytest.param({"replicas": 4, "minAvailable": 0}, 0, id="an explicit 0 stays"),
        pytest.param(
            {"replicas": 6, "partitionPolicy": {"minPartitions": 2, "partitionSize": 2}},
            4,
            id="partitions that must be whole",
        ),
        pytest.param(
            {"replicas": 6, "partitionPolicy": {"partitionSize": 2}}, 6, id="no partition must be"
        ),
        pytest.param({}, 0, id="no replicas"),
    ],
)
def test_a_tasks_minimum_is(task: Object, minimum: int) -> None:
    assert defaulted(a_job(task))["spec"]["tasks"][0]["minAvailable"] == minimum


def test_a_pod_on_its_hosts_network_still_finds_the_clusters_names() -> None:
    host = {"spec": {"hostNetwork": True}}
    chosen = {"spec": {"hostNetwork": True, "dnsPolicy": "Default"}}
    job = a_job(a_task("a", template=host), a_task("b", template=chosen), a_task("c"))
    policies = [
        task["template"]["spec"].get("dnsPolicy") for task in defaulted(job)["spec"]["tasks"]
    ]
    assert policies == ["ClusterFirstWithHostNet", "Default", None]


@pytest.mark.parametrize(
    "spec",
    [None, 3, [], {"tasks": 5}, {"tasks": [1, None, "x"]}, {"tasks": [{"replicas": "many"}]}],
    ids=str,
)
def test_what_is_of_the_wrong_type_is_left_alone(spec: object) -> None:
    job = a_job() | {"spec": spec}
    changed = defaulted(job)["spec"]
    if isinstance(spec, dict):
        assert "minAvailable" not in changed
        assert len(str(changed["tasks"])) >= len(str(spec["tasks"]))
    else:
        assert changed == spec


@pytest.mark.parametrize(
    ("scheduler", "names", "ours"),
    [
        (None, ("tutti", "volcano"), True),
        (None, ("tutti",), False),
        ("", ("tutti",), False),
        ("volcano", ("tutti",), False),
        ("tutti", ("tutti",), True),
        ("default-scheduler", ("tutti", "volcano"), False),
    ],
)
def test_a_job_is_ours_when_it_means_one_of_our_schedulers(
    scheduler: str | None, names: tuple[str, ...], ours: bool
) -> None:
    """A job that names none means Volcano: where a live Volcano has that name, it is not ours."""
    job = a_job(a_task(), **({} if scheduler is None else {"schedulerName": scheduler}))
    assert (asked(review(job), reference_objects(names=names)) is not None) == ours
