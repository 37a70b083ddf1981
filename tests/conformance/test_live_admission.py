"""Volcano's recorded admission answers on a real API server with our CRDs and our webhook."""

from pathlib import Path

import pytest

from tests.conformance.live_admission import Played, play
from tests.conformance.recordings import themes
from tests.controlplane.client import ApiError, RawClient
from tests.support.waiting import eventually

pytestmark = pytest.mark.integration

#: What differs, and why; for users in `docs/compatibility.md`.
DIFFERENT = {
    "job/defaults-scheduler-kept": "another scheduler's job is none of our business",
    "job/schema-scheduler-name-dotted": "another scheduler's job is none of our business",
    "job/numa-thousand-milli": "a quantity is left as it was written",
    "job/depends-empty-names": "what was written is left: an empty list",
    "queue/update-parent-cycle": "a queue that is its own ancestor is a mistake",
    "queue/defaults-no-spec": "Volcano's patch fails with 500; ours makes the spec",
}
#: Plays in every run: each kind, each way of being refused.
FIXED = (
    r"^(pod|hypernode|command)/|^cronjob/(schedule|zone)|^jobflow/(un|ri)|^podgroup/(queue|name)|"
    r"^queue/(delete|quantity|anno)|"
    r"^job/(policy-e|plugin-[mu]|volume|numa|defaults|update-[rt]|template-[trd]|depends-e)"
)


async def played(api: RawClient, only: str) -> list[Played]:
    return [
        one
        for theme in themes("admission")
        async for one in play(api, theme.partition("/")[2], only)
    ]


@pytest.mark.timeout(240)
async def test_a_part_of_each_kinds_cases_is_answered_as_volcano_answers(
    scheduler_conf: Path, api: RawClient
) -> None:
    found = await played(api, FIXED)
    assert len(found) > 250
    wrong = {one.key: one for one in found if one.differs and one.key not in DIFFERENT}
    assert not wrong


CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


async def test_a_configuration_made_for_volcano_can_point_at_us(
    scheduler_conf: Path, api: RawClient
) -> None:
    """In kube-system, of which our own configuration keeps away: only Volcano's asks here."""
    ours = (await api.get(f"{CONFIGURATIONS}/tutti-admission"))["webhooks"][0]["clientConfig"]
    client = {**ours, "url": ours["url"].removesuffix("/validate") + "/jobs/validate"}
    rule = {
        "apiGroups": ["batch.volcano.sh"],
        "apiVersions": ["v1alpha1"],
        "resources": ["jobs"],
        "operations": ["CREATE", "UPDATE"],
    }
    webhook = {
        "name": "validatejob.volcano.sh",
        "clientConfig": client,
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "NoneOnDryRun",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
    }
    name = "volcano-admission-service-jobs-validate"
    pod = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "trial"},
        "spec": {"minAvailable": 2, "tasks": [{"name": "w", "replicas": 1, "template": pod}]},
    }

    async def refused() -> str:
        where = "/apis/batch.volcano.sh/v1alpha1/namespaces/kube-system/jobs"
        try:
            await api.request("POST", where, job, params={"dryRun": "All"})
        except ApiError as error:
            return str(error)
        return ""

    await api.create(CONFIGURATIONS, {"metadata": {"name": name}, "webhooks": [webhook]})
    try:
        message = await eventually(refused, because="the API server knows the configuration")
    finally:
        await api.delete(f"{CONFIGURATIONS}/{name}")
    assert "validatejob.volcano.sh" in message
    assert "job 'minAvailable' should not be greater than total replicas in tasks" in message


@pytest.mark.certify
@pytest.mark.timeout(900)
async def test_every_recorded_case_is_answered_as_volcano_answers(
    scheduler_conf: Path, api: RawClient
) -> None:
    found = await played(api, "")
    assert len(found) == 730
    assert {one.key: one for one in found if one.differs}.keys() == DIFFERENT.keys()
