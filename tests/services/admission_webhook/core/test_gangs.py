"""What the planner is asked about a new gang, and what its answer becomes."""

import msgspec
import pytest

from services.admission_webhook.core.gangs import PODS_MAX, advice, question
from shared.contracts.asking import FitAnswer, FitRequest
from shared.kube.resources import PODGROUPS_INCUBATOR
from shared.model.objects import Shape
from tests.services.admission_webhook.reviews import (
    Object,
    a_job,
    a_pod,
    a_pod_group,
    a_queue,
    a_task,
    asked,
    defaulted,
    review,
)


def asks(candidate: Object, old: Object | None = None) -> FitRequest | None:
    found = asked(review(candidate, old=old))
    assert found is not None
    return question(found, "r-1")


def template(cpu: object) -> Object:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"containers": [container], "nodeSelector": {"gpu": "yes"}}}


def test_a_job_is_asked_about_with_the_pods_of_its_templates() -> None:
    job = a_job(
        a_task("ps", 1, template=template("500m")),
        a_task("worker", 2, template=template(2), minAvailable=1),
        queue="field",
    )
    found = asks(defaulted(job))
    assert found is not None
    assert (found.group.namespace, found.group.name, found.group.queue) == (
        "team",
        "trial",
        "field",
    )
    assert found.group.min_member == 2
    assert found.group.min_task_member == (("ps", 1), ("worker", 1))
    shapes = [msgspec.msgpack.decode(pod.shape, type=Shape) for pod in found.pods]
    assert [(pod.role, pod.index) for pod in found.pods] == [
        ("ps", 0),
        ("worker", 0),
        ("worker", 1),
    ]
    assert [dict(shape.requests)["cpu"] for shape in shapes] == [500, 2000, 2000]
    assert shapes[0].node_selector == (("gpu", "yes"),)


def test_a_null_in_a_template_means_nothing() -> None:
    nothing = template(1)
    nothing["spec"] |= {"affinity": None, "tolerations": None, "nodeSelector": None}
    plain = template(1)
    del plain["spec"]["nodeSelector"]
    found = [asks(a_job(a_task(template=one))) for one in (nothing, plain)]
    assert found[0] == found[1] is not None


def test_a_group_is_asked_about_by_what_it_declares() -> None:
    found = asks(a_pod_group(minMember=3, minResources={"cpu": 9, "nvidia.com/gpu": 3}))
    assert found is not None
    assert found.pods == ()
    assert found.group.min_resources == (("cpu", 9000), ("nvidia.com/gpu", 3))
    assert found.group.name == "trial"


@pytest.mark.parametrize(
    "candidate",
    [
        pytest.param(a_pod_group(minMember=3), id="a group that declares only a number"),
        pytest.param(
            a_pod_group(PODGROUPS_INCUBATOR, minResources={"cpu": 1}),
            id="a dialect without declared resources",
        ),
        pytest.param(a_pod_group(minMember="x", minResources={"cpu": 1}), id="a broken group"),
        pytest.param(a_job(a_task(replicas=PODS_MAX + 1)), id="more pods than can be sent"),
        pytest.param(a_job(a_task(replicas=0)), id="no pods"),
        pytest.param(a_job(a_task(template={"spec": {"containers": 7}})), id="a broken template"),
        pytest.param(a_job({"name": "a", "replicas": 1}), id="no template"),
        pytest.param(a_queue(), id="a queue"),
        pytest.param(a_pod(), id="a pod"),
    ],
)
def test_nothing_is_asked_about(candidate: Object) -> None:
    assert asks(candidate) is None


def test_nothing_is_asked_about_an_update() -> None:
    job = a_job(a_task())
    assert asks(job) is not None
    assert asks(job, old=job) is None


NEVER = FitAnswer(fits=False, ever=False, sentence="even on empty nodes: too many GPUs")
LATER = FitAnswer(fits=False, ever=True, sentence="needs 2 more GPUs")
NOW = FitAnswer(fits=True, ever=True)


@pytest.mark.parametrize(
    ("answer", "dry_run", "warnings"),
    [
        (NEVER, False, "tutti: this gang can never run here: even on empty nodes: too many GPUs"),
        (NEVER, True, "tutti: this gang can never run here: even on empty nodes: too many GPUs"),
        (LATER, False, ""),
        (LATER, True, "tutti: this gang would have to wait: needs 2 more GPUs"),
        (NOW, False, ""),
        (NOW, True, "tutti: this gang would fit now"),
    ],
)
def test_advice_is_given_where_it_helps(answer: FitAnswer, dry_run: bool, warnings: str) -> None:
    assert advice(answer, dry_run=dry_run) == ((warnings,) if warnings else ())
