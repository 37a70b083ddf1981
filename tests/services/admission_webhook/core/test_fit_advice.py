"""What the planner is asked about a new gang, and what its answer becomes."""

from typing import Any

import msgspec
import pytest

from services.admission_webhook.core.fit_advice import advice_warnings, fit_request
from shared.admission.review import decode_review
from shared.contracts.questions import FIT_PODS_MAX, FitAnswer, FitRequest
from shared.kube.resources import (
    DEPLOYMENTS,
    JOBS_BATCH,
    PODGROUPS_INCUBATOR,
    STATEFUL_SETS,
    Resource,
)
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
from tests.support.golden import Golden


def asks(candidate: Object, old: Object | None = None, **request: Any) -> FitRequest | None:
    body = review(candidate, old=old, **request)
    found = asked(body)
    assert found is not None
    return fit_request(found, decode_review(body))


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
        pytest.param(a_job(a_task(replicas=FIT_PODS_MAX + 1)), id="more pods than can be sent"),
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


TFJOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")


def a_workload(resource: Resource, scheduler: str = "tutti", **spec: Any) -> Object:
    """A workload of another project's controller, whose pods name a scheduler."""
    made = template(2)
    made["spec"]["schedulerName"] = scheduler
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "trial"},
        "spec": {"template": made, **spec},
    }


@pytest.mark.parametrize(
    ("resource", "spec", "pods"),
    [
        (DEPLOYMENTS, {"replicas": 3}, 3),
        (STATEFUL_SETS, {}, 1),
        (JOBS_BATCH, {"parallelism": 4, "completions": 2}, 2),
        (TFJOBS, {"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": template(1)}}}, 2),
    ],
    ids=["Deployment", "StatefulSet", "batch Job", "TFJob"],
)
def test_a_dry_run_of_another_controllers_workload_counts_all_its_pods(
    resource: Resource, spec: Object, pods: int
) -> None:
    if resource is TFJOBS:
        spec["runPolicy"] = {"schedulingPolicy": {"queue": "field"}}
    workload = a_workload(resource, **spec)
    found = asks(workload, resource=resource, dryRun=True)
    assert found is not None
    assert (found.group.min_member, len(found.pods)) == (pods, pods)
    assert found.group.queue == ("field" if resource is TFJOBS else "")
    assert asks(workload, resource=resource) is None, "nothing is asked when it is created"


def test_a_workload_of_another_scheduler_is_not_for_us() -> None:
    workload = a_workload(DEPLOYMENTS, "default-scheduler")
    assert asked(review(workload, resource=DEPLOYMENTS, dryRun=True)) is None


def test_a_dry_run_of_a_pod_of_a_kubernetes_group_names_that_group() -> None:
    """So that the planner adds the pods of the group, or of its tree, that wait already."""
    pod = a_pod()
    pod["spec"] |= template(2)["spec"] | {"schedulingGroup": {"podGroupName": "workers"}}
    found = asks(pod, dryRun=True)
    assert found is not None
    (one,) = found.pods
    assert (found.group.scope, found.group.name) == (one.group_scope, one.group_name)
    assert one.group_name == "workers"


def test_a_dry_run_of_a_pod_reports_on_that_pod() -> None:
    pod = a_pod()
    pod["spec"] |= template(2)["spec"]
    found = asks(pod, dryRun=True)
    assert found is not None
    (one,) = found.pods
    assert dict(msgspec.msgpack.decode(one.shape, type=Shape).requests)["cpu"] == 2000
    assert (found.group.min_member, found.group.name) == (1, "trial")
    named = a_pod(annotations={"scheduling.k8s.io/group-name": "train"})
    found = asks(named, dryRun=True)
    assert found is not None
    assert (found.group.name, found.pods[0].group_name) == ("train", "train")


NEVER = FitAnswer(fits=False, ever=False, sentence="ResourceQuota small allows 1 pods")
TOO_FEW = FitAnswer(
    fits=False, ever=False, needs_nodes=True, sentence="even on empty nodes: too many GPUs"
)
LATER = FitAnswer(fits=False, ever=True, sentence="needs 2 more GPUs")
NOW = FitAnswer(fits=True, ever=True)
PLACES = FitAnswer(fits=True, ever=True, where=(("n1", 2), ("n0", 1)))
MANY = FitAnswer(fits=True, ever=True, where=tuple((f"n{index}", 1) for index in range(5)))
NEVER_SAID = "tutti: this gang can never run here: ResourceQuota small allows 1 pods"
TOO_FEW_SAID = "tutti: this gang needs more or other nodes: even on empty nodes: too many GPUs"


@pytest.mark.parametrize(
    ("answer", "dry_run", "warnings"),
    [
        (NEVER, False, NEVER_SAID),
        (NEVER, True, NEVER_SAID),
        (TOO_FEW, False, TOO_FEW_SAID),
        (TOO_FEW, True, TOO_FEW_SAID),
        (LATER, False, ""),
        (LATER, True, "tutti: this gang would have to wait: needs 2 more GPUs"),
        (NOW, False, ""),
        (NOW, True, "tutti: this gang would fit now"),
        (PLACES, True, "tutti: this gang would fit now: 2 on n1, 1 on n0"),
        (
            MANY,
            True,
            "tutti: this gang would fit now: 1 on n0, 1 on n1, 1 on n2, more on 2 other nodes",
        ),
    ],
)
def test_advice_is_given_where_it_helps(answer: FitAnswer, dry_run: bool, warnings: str) -> None:
    given = advice_warnings(answer, namespace="team", dry_run=dry_run)
    assert given == ((warnings,) if warnings else ())


def test_victims_are_named_only_to_their_own_namespace(golden: Golden) -> None:
    answer = msgspec.structs.replace(
        LATER, displaces=(("team/a", 3), ("other/b", 1)), displaces_by="preempt"
    )
    for namespace in ("team", "other", "third"):
        first, second = advice_warnings(answer, namespace=namespace, dry_run=True)
        assert ("(a)" in first, "(b)" in first) == (namespace == "team", namespace == "other")
        golden(first, second)
    assert advice_warnings(answer, namespace="team", dry_run=False) == ()


def test_one_pod_of_another_queue_is_reported_in_the_singular(golden: Golden) -> None:
    answer = msgspec.structs.replace(LATER, displaces=(("x/a", 1),), displaces_by="reclaim")
    first, _ = advice_warnings(answer, namespace="team", dry_run=True)
    golden(first)
