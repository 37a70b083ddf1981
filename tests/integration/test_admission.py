"""The suite with its webhook, as the API server uses it: what it refuses, and that it costs nothing
when it is dead.
"""

from typing import Any, Final

import pytest

from shared.kube.resources import QUEUES_VOLCANO
from tests.controlplane.client import ApiError, Object
from tests.integration.stage import INCUBATOR, VOLCANO, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

SUITE_FLAGS: Final = ()
CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


async def test_a_group_that_makes_no_sense_is_refused_with_all_its_violations(
    stage: Stage,
) -> None:
    assert stage.suite.ready.webhook.registered
    with pytest.raises(ApiError) as refused:
        await stage.group("bad", -1, version=INCUBATOR, notes={"tutti.dev/hold-seconds": "a while"})
    assert "spec.minMember" in str(refused.value)
    assert "metadata.annotations[tutti.dev/hold-seconds]" in str(refused.value)
    await stage.nodes(1)
    await stage.gang("good", 3)
    await stage.bound("good", 3)


async def test_a_duration_above_its_ceiling_is_stored_with_a_warning_that_names_both(
    stage: Stage,
) -> None:
    notes = {"tutti.dev/reserve-seconds": "999999999", "tutti.dev/hold-seconds": "600"}
    manifest = {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": {"name": "grab", "annotations": notes},
        "spec": {"minMember": 1},
    }
    warnings = await stage.created(manifest)
    assert (
        "metadata.annotations[tutti.dev/reserve-seconds]: 999999999 s is above the ceiling of 900 s"
    ) in warnings
    assert "hold-seconds" not in warnings


async def test_a_run_limit_grows_only_as_far_as_the_queue_allows(stage: Stage) -> None:
    limit, most = "tutti.dev/run-limit", "tutti.dev/run-limit-max"
    queue: Object = {
        "apiVersion": VOLCANO,
        "kind": "Queue",
        "metadata": {"name": "limited", "annotations": {most: "4h"}},
        "spec": {},
    }
    await stage.api.create(QUEUES_VOLCANO.path(), queue)

    with pytest.raises(ApiError) as refused:
        await stage.group("long", 1, spec={"queue": "limited"}, notes={limit: "5h"})
    assert '"5h": must be at most "4h"' in str(refused.value)
    await stage.group("short", 1, spec={"queue": "limited"}, notes={limit: "1h"})
    path = stage.group_path("short", VOLCANO)
    for text, allowed in (("3h", True), ("2h", True), ("5h", False), (None, True)):
        patch: Object = {"metadata": {"annotations": {limit: text}}}
        if allowed:
            await stage.api.patch(path, patch)
        else:
            with pytest.raises(ApiError) as long:
                await stage.api.patch(path, patch)
            assert limit in str(long.value)
    await stage.api.patch(path, {"metadata": {"labels": {"app": "a"}}})
    by_slurm = {"slurmjob.slinky.slurm.net/timelimit": "5"}
    await stage.group("marked", 1, notes=by_slurm)
    removal: Object = {"metadata": {"annotations": dict.fromkeys(by_slurm)}}
    with pytest.raises(ApiError) as removed:
        await stage.api.patch(stage.group_path("marked", VOLCANO), removal)
    assert "timelimit]: Forbidden: may not be removed" in str(removed.value)


async def test_an_annotation_without_effect_is_warned_of_with_its_object(stage: Stage) -> None:
    pods: Object = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "registry.example/none"}],
        },
    }
    selector = {"matchLabels": {"app": "a"}}
    always = {**pods, "spec": {**pods["spec"], "restartPolicy": "Always"}}
    cron: Object = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": pods}}}
    specs: dict[tuple[str, str], Object] = {
        ("batch/v1", "Job"): {"suspend": True, "template": pods},
        ("batch/v1", "CronJob"): cron,
        ("apps/v1", "DaemonSet"): {"selector": selector, "template": always},
    }
    for (version, kind), spec in specs.items():
        metadata = {"name": "a", "annotations": {"tutti.dev/do-not-distrupt": "true"}}
        manifest = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        warned = await stage.created(manifest)
        assert f"annotation tutti.dev/do-not-distrupt of {kind} a has no effect" in warned, warned
    templates = {"metadata": {"annotations": {"tutti.dev/hold-seconds": "soon"}}}
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "b"},
        "spec": {"suspend": True, "template": {**pods, **templates}},
    }
    warned = await stage.created(manifest)
    assert "annotation tutti.dev/hold-seconds of the pods of Job b has no effect" in warned


async def test_a_pod_with_a_group_name_that_cannot_be_one_is_refused(stage: Stage) -> None:
    with pytest.raises(ExceptionGroup) as refused:
        await stage.members("No Such Name", 1, prefix="bad")
    assert "scheduling.k8s.io/group-name" in str(refused.value.exceptions[0])


async def test_gangs_come_in_while_the_webhook_is_killed(stage: Stage) -> None:
    await stage.nodes(2)
    before = await stage.suite.pids()
    await stage.suite.kill("admission-webhook-0")
    for index in range(4):
        await stage.gang(f"gang-{index}", 2)
    for index in range(4):
        await stage.bound(f"gang-{index}", 2)
    assert (await stage.suite.pids())["admission-webhook-0"] != before["admission-webhook-0"]

    async def refuses_again() -> bool:
        try:
            await stage.group("bad", -1, version=INCUBATOR)
        except ApiError as error:
            return "spec.minMember" in str(error)
        await stage.delete(stage.group_path("bad", INCUBATOR))
        return False

    await eventually(refuses_again, timeout_s=20, because="the webhook is back")
    assert (await stage.api.get(CONFIGURATIONS))["items"]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("batch/v1 Job", {"parallelism": 2, "completions": 2}),
        ("apps/v1 Deployment", {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}}),
        ("batch.volcano.sh/v1alpha1 Job", {"schedulerName": "tutti", "minAvailable": 2}),
    ],
)
async def test_a_dry_run_of_a_workload_warns_whether_and_where_it_would_run(
    stage: Stage, kind: str, spec: dict[str, Any]
) -> None:
    await stage.nodes(2)

    async def warning_of(cpu: str) -> str:
        return await stage.tried(_workload(kind, cpu, spec))

    async def fits() -> bool:
        return "tutti: this gang would fit now: 1 on node-" in await warning_of("3")

    # The standby that answers may have seen the nodes a moment later.
    await eventually(fits, timeout_s=20, because="the standby knows the nodes")
    assert "tutti: this gang needs more or other nodes" in await warning_of("5")
    assert await stage.pods() == [], "nothing was created"


async def test_a_request_above_a_quota_is_warned_of_for_a_job_and_for_a_bare_group(
    stage: Stage,
) -> None:
    await stage.nodes(2)
    hard = {"limits.cpu": "3", "requests.memory": "1Gi"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    await stage.api.create(stage.path("resourcequotas"), {**quota, "spec": {"hard": hard}})
    spec = {"schedulerName": "tutti", "minAvailable": 2}
    job = _workload("batch.volcano.sh/v1alpha1 Job", "1", spec)
    container = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]

    async def warning_of(limit: str) -> str:
        container["resources"]["limits"] = {"cpu": limit}
        return await stage.tried(job)

    quota_name = f"{stage.namespace}/small"
    never = f"tutti: this gang can never run here: ResourceQuota {quota_name} allows"

    async def refused() -> bool:
        return f"{never} limits of 3 cpu, the gang needs 4 cpu at least" in await warning_of("2")

    await eventually(refused, timeout_s=20, because="the standby knows the quota")
    assert "can never" not in await warning_of("1500m")
    group = {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": {"name": "tried"},
        "spec": {"minMember": 2, "minResources": {"memory": "2Gi"}},
    }
    assert f"{never} 1Gi memory, the gang needs 2Gi memory" in await stage.tried(group)


def _workload(kind: str, cpu: str, spec: dict[str, Any]) -> dict[str, Any]:
    version, _, name = kind.partition(" ")
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    pod = {"schedulerName": "tutti", "containers": [container]}
    if name == "Job":
        pod["restartPolicy"] = "Never"
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod}
    if "volcano" in version:
        spec = {**spec, "tasks": [{"name": "w", "replicas": 2, "template": template}]}
    else:
        spec = {**spec, "template": template}
    return {"apiVersion": version, "kind": name, "metadata": {"name": "tried"}, "spec": spec}
