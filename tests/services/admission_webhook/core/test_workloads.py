"""Workloads are sent when they are only tried, or when their template may be worth a warning."""

from typing import Any

import pytest

from services.admission_webhook.core.configurations import Address, Member, configuration
from services.admission_webhook.core.workloads import RESOURCES
from shared.kube.resources import JOBS_BATCH
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
