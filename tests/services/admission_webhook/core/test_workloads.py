"""Workloads are sent when they are only tried, or when their template may be worth a warning."""

from typing import Any

import pytest

from services.admission_webhook.core.configurations import Address, Member, configuration
from shared.admission.workloads import RESOURCES
from shared.kube.resources import JOBS_BATCH, PODS
from tests.services.admission_webhook.reviews import a_pod, asked, judged, review

URL = Address(url="https://127.0.0.1:9443/")


def webhooks(phase: Any = "validate", **options: Any) -> list[Any]:
    members = {"a": Member(address=URL, ca="CA")}
    found = configuration(phase, members, URL, ("tutti",), **options)["webhooks"]
    plurals = {(one.group, one.plural) for one in RESOURCES}
    return [
        webhook
        for webhook in found
        for rule in webhook["rules"][:1]
        if (rule["apiGroups"][0], rule["resources"][0]) in plurals
    ]


def test_one_webhook_is_for_dry_runs_of_all_workloads() -> None:
    (webhook,) = webhooks()
    assert webhook["name"] == "validate-dry-run.tutti.dev"
    (condition,) = webhook["matchConditions"]
    assert condition["expression"].startswith("(has(request.dryRun) && request.dryRun) || ")
    assert len(webhook["rules"]) == len(RESOURCES)
    keys = "['scheduling.k8s.io/group-name', 'pod-group-name']"
    expected = f"has(object.spec.template.metadata.annotations) && {keys}"
    assert expected in condition["expression"]


@pytest.mark.parametrize(
    ("phase", "options"),
    [("mutate", {}), ("validate", {"with_conditions": False})],
    ids=["nothing is changed", "an API server that cannot determine dry runs"],
)
def test_none_is_registered_where_it_would_be_in_the_way(phase: str, options: Any) -> None:
    assert webhooks(phase, **options) == []


def a_job_of(scheduler: str, notes: dict[str, str], **metadata: Any) -> Any:
    template = {
        "metadata": {"annotations": notes},
        "spec": {**a_pod(scheduler)["spec"], "restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "trial", **metadata},
        "spec": {"template": template},
    }


def test_a_template_of_a_gang_that_names_the_default_scheduler_gets_a_warning() -> None:
    group = {"scheduling.k8s.io/group-name": "g"}
    job = a_job_of("default-scheduler", group)
    (warning,) = judged(review(job, resource=JOBS_BATCH)).warnings
    assert 'schedulerName "default-scheduler" ignores the group g' in warning
    assert asked(review(a_job_of("default-scheduler", {}), resource=JOBS_BATCH)) is None
    owned = a_job_of("default-scheduler", group, ownerReferences=[{"controller": True}])
    assert asked(review(owned, resource=JOBS_BATCH)) is None
    (webhook,) = webhooks()
    named = "object.spec.template.spec.schedulerName == 'default-scheduler'"
    assert named in webhook["matchConditions"][0]["expression"]


def noted(kind: str, of_object: dict[str, str], of_pods: dict[str, str] | None = None) -> Any:
    """An object with these annotations on itself and on its pods."""
    template = {"metadata": {"annotations": of_pods or {}}, "spec": a_pod("volcano")["spec"]}
    specs: dict[str, Any] = {
        "CronJob": {"jobTemplate": {"spec": {"template": template}}},
        "JobSet": {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": template}}}]},
        "MPIJob": {"mpiReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}},
        "RayCluster": {},
    }
    spec = specs.get(kind, {"template": template})
    metadata = {"name": "train", "annotations": of_object}
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": metadata, "spec": spec}


API_VERSIONS = {
    one.kind: one.api_version for one in reversed(RESOURCES) if one.plural != "jaxjobs"
} | {"MPIJob": "kubeflow.org/v2beta1"}
EVERY_KIND = ("Deployment", "StatefulSet", "DaemonSet", "Job", "JobSet", "MPIJob", "RayCluster")


def warned(manifest: Any) -> tuple[str, ...]:
    resource = next(
        one
        for one in RESOURCES
        if (one.api_version, one.kind) == (manifest["apiVersion"], manifest["kind"])
    )
    return judged(review(manifest, resource=resource)).warnings


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_an_annotation_that_works_gets_no_warning(kind: str) -> None:
    setting = {"tutti.dev/do-not-disrupt": "true"}
    whole = {"tutti.dev/gang": "all"} if kind in ("Job", "JobSet", "MPIJob", "RayCluster") else {}
    assert warned(noted(kind, {**setting, **whole}, setting)) == ()


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("hold-seconds", "soon", '"soon" is not a whole number of seconds'),
        ("do-not-distrupt", "true", 'none of this name (did you mean "tutti.dev/do-not-disrupt"?)'),
        ("provisioning-class", "check-capacity", "it counts on a Queue only"),
        ("schedule", "true", "it counts as a label of a namespace"),
    ],
)
def test_an_annotation_without_an_effect_is_named_with_its_object(
    kind: str, key: str, value: str, words: str
) -> None:
    (warning,) = warned(noted(kind, {f"tutti.dev/{key}": value}))
    assert warning.startswith(f"tutti: annotation tutti.dev/{key} of {kind} train has no effect: ")
    assert words in warning


SIZES = ("scheduling.volcano.sh/group-min-member", "scheduling.k8s.io/group-min-member")


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("key", SIZES)
def test_a_size_that_is_no_number_is_named_on_an_object_and_on_its_pods(
    kind: str, key: str
) -> None:
    assert warned(noted(kind, {key: "2"}, {key: "2"})) == ()
    (warning,) = warned(noted(kind, {key: "two"}))
    words = f'annotation {key} of {kind} train has no effect: "two" is not a number of pods'
    assert warning == f"tutti: {words}"
    if kind != "RayCluster":
        (warning,) = warned(noted(kind, {}, {key: "two"}))
        assert f"annotation {key} of the pods of {kind} train has no effect" in warning


@pytest.mark.parametrize("kind", ["Job", "JobSet", "MPIJob", "RayCluster"])
def test_a_misspelt_request_for_one_gang_is_named(kind: str) -> None:
    assert warned(noted(kind, {"tutti.dev/gang": "none"})) == ()
    (warning,) = warned(noted(kind, {"tutti.dev/gang": "All"}))
    assert warning.endswith('has no effect: "All" is neither "all" nor "none"')


def test_annotations_of_a_template_are_named_too() -> None:
    (warning,) = warned(noted("Job", {}, {"tutti.dev/hold-seconds": "soon"}))
    assert "of the pods of Job train" in warning
    (warning,) = warned(noted("Job", {}, {"tutti.dev/gang": "all"}))
    assert "it counts on a Job, or on an operator's object" in warning


def test_the_annotation_for_one_gang_is_named_where_it_makes_none() -> None:
    for kind in ("Deployment", "StatefulSet", "DaemonSet"):
        (warning,) = warned(noted(kind, {"tutti.dev/gang": "all"}))
        assert "scheduling.volcano.sh/group-min-member makes a gang" in warning


def test_a_cron_job_passes_on_what_its_job_template_has() -> None:
    (warning,) = warned(noted("CronJob", {"tutti.dev/gang": "all"}))
    assert "write it in spec.jobTemplate.metadata" in warning
    right = noted("CronJob", {})
    right["spec"]["jobTemplate"]["metadata"] = {"annotations": {"tutti.dev/gang": "all"}}
    assert warned(right) == ()


def test_a_setting_beside_a_named_group_belongs_on_the_group() -> None:
    named = {"scheduling.k8s.io/group-name": "g"}
    (warning,) = warned(noted("Job", {"tutti.dev/hold-seconds": "5"}, named))
    assert "the pods name the group g: write it there" in warning


def test_what_tutti_writes_itself_gets_no_warning() -> None:
    assert warned(noted("Job", {"tutti.dev/verdict": "{}", "tutti.dev/trace-id": "1"})) == ()
    owned = noted("Job", {"tutti.dev/hold-seconds": "soon"})
    owned["metadata"]["ownerReferences"] = [{"controller": True}]
    assert warned(owned) == ()


def test_a_bare_pod_with_a_setting_that_cannot_be_read_gets_a_warning() -> None:
    pod = a_pod("tutti")
    pod["metadata"]["annotations"] = {"tutti.dev/hold-seconds": "soon"}
    (warning,) = judged(review(pod, resource=PODS)).warnings
    assert warning.startswith("tutti: annotation tutti.dev/hold-seconds of Pod ")


def test_only_creations_with_an_annotation_of_ours_are_sent() -> None:
    (webhook,) = webhooks()
    expression = webhook["matchConditions"][0]["expression"]
    for path in ("object", "object.spec.template", "object.spec.jobTemplate"):
        of_ours = "key.startsWith('tutti.dev/') || key.endsWith('/group-min-member')"
        assert f"{path}.metadata.annotations.exists(key, {of_ours})" in expression
