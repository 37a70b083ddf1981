"""A Job of which a creation is refused: its status stays that of its pods, and the rest goes on.

Its minimum may run without the refused pods. Most tests refuse in the client, since any object may
be refused for any reason; those of the real control plane have it refuse by its own means.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from typing_extensions import override

from services.controller.core.events import ControllerEvent
from services.controller.reconciling.controller import Reconciler, Runtime
from services.controller.reconciling.writes import Writes, Written
from shared.kinds.metadata import Metadata
from shared.kube.client import KubeClient
from shared.kube.errors import ApiError, KubeError, api_error
from shared.kube.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CONFIGMAPS,
    JOBS_VOLCANO,
    PODGROUPS_VOLCANO,
    PODS,
    RESOURCE_QUOTAS,
    VOLUME_CLAIMS,
    Resource,
)
from tests.services.controller.job_stage import NS, Stage, a_task, job_controller
from tests.services.controller.playing import Object, becomes, events, make, read, running
from tests.support.waiting import eventually

EVICTED = "PodEvicted"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
Refuses = Callable[[str, Resource, str], KubeError | None]
"""The error for a verb, a resource and an object's name; None: the request is sent."""


class _Refusing(Writes):
    def __init__(self, client: KubeClient, refuses: Refuses) -> None:
        super().__init__(client, per_s=1_000)
        self.refuses = refuses

    @override
    async def create(self, resource: Resource, manifest: Any, **named: Any) -> Written:
        metadata = manifest["metadata"] if isinstance(manifest, Mapping) else manifest.metadata
        name = metadata["name"] if isinstance(metadata, Mapping) else metadata.name
        self._check("create", resource, name)
        return await super().create(resource, manifest, **named)

    @override
    async def delete(self, resource: Resource, target: Any, **named: Any) -> Written:
        self._check("delete", resource, target.name)
        return await super().delete(resource, target, **named)

    def _check(self, verb: str, resource: Resource, name: str) -> None:
        error = self.refuses(verb, resource, name)
        if error is not None:
            raise error


def refused(status: int, message: str = "no") -> ApiError:
    """An answer of the API server with this status."""
    return api_error(status, message.encode())


def refusing(refuses: Refuses) -> Callable[[Runtime], Reconciler]:
    """A Job controller some of whose requests are refused."""

    def build(runtime: Runtime) -> Reconciler:
        runtime.writes = _Refusing(runtime.client, refuses)
        return job_controller(runtime)

    return build


def extra_pods(error: KubeError) -> Refuses:
    """Refuse the pods of task extra."""

    def refuses(verb: str, resource: Resource, name: str) -> KubeError | None:
        return error if (verb, resource) == ("create", PODS) and "-extra-" in name else None

    return refuses


def counts(status: Object) -> dict[str, Any]:
    """Phase and counts of a Job's status."""
    fields = ("pending", "running", "succeeded", "failed", "terminating", "retryCount")
    found = {name: status[name] for name in fields if status.get(name)}
    return {"phase": status.get("state", {}).get("phase"), **found}


async def seen(stage: Stage) -> dict[str, Any]:
    return counts((await stage.job()).get("status", {}))


REFUSALS = {
    "forbidden": refused(403),
    "invalid": refused(422),
    "a webhook's own status": refused(400, 'admission webhook "w" denied the request'),
    "a webhook's conflict": refused(409, 'admission webhook "w" denied the request'),
    "a webhook that does not answer": refused(500, 'failed calling webhook "w": refused'),
    "too large": refused(413),
    "a conflict of quotas": refused(409, "Operation cannot be fulfilled on resourcequotas"),
    "an error of the server": refused(500, "etcdserver: leader changed"),
}
#: Those that nothing but time ends are not said of the Job.
OF_THE_MOMENT = {"a conflict of quotas", "an error of the server"}


@pytest.mark.parametrize("kind", REFUSALS)
@pytest.mark.parametrize("either", ["embedded"], indirect=True)
async def test_a_job_whose_minimum_runs_while_other_pods_are_refused_is_running_with_counts(
    either: KubeClient, kind: str
) -> None:
    stage = Stage(either, "most")
    async with running(either, refusing(extra_pods(REFUSALS[kind]))) as runtime:
        await stage.submit(a_task("main", 2), a_task("extra", 2), minAvailable=2)
        await becomes(stage.pods, ["most-main-0", "most-main-1"])
        await stage.kubelet("Running", "most-main-0", "most-main-1")
        await becomes(lambda: seen(stage), {"phase": "Running", "running": 2})
        await stage.kubelet("Succeeded", "most-main-0")
        await becomes(lambda: seen(stage), {"phase": "Running", "running": 1, "succeeded": 1})
        await runtime.events.flush()
    said = [message for _, _, message in await events(either, NS, "most")]
    if kind in OF_THE_MOMENT:
        assert said == []
    else:
        problem = f"failed to create pod most-extra-0, err: {REFUSALS[kind].message}"
        assert said == [f"Error creating pods: [{problem}]"]


@pytest.mark.parametrize("action", ["RestartTask", "RestartPod", "RestartJob"])
@pytest.mark.parametrize("either", ["embedded"], indirect=True)
async def test_a_retry_ends_in_running_while_other_pods_are_refused(
    either: KubeClient, action: str
) -> None:
    stage = Stage(either, "again")
    policies = [{"event": EVICTED, "action": action}]
    async with running(either, refusing(extra_pods(refused(403)))):
        await stage.submit(a_task("main", 2), a_task("extra", 2), minAvailable=2, policies=policies)
        await restarts_once(stage)


async def restarts_once(stage: Stage) -> None:
    """Evict a pod of a job whose two pods of task main are all that is not refused."""
    mains = [f"{stage.name}-main-0", f"{stage.name}-main-1"]
    await becomes(stage.pods, mains)
    await stage.kubelet("Running", *mains)
    await becomes(lambda: seen(stage), {"phase": "Running", "running": 2})
    group = f"{stage.name}-{stage.uid}"
    before = await read(stage.client, PODGROUPS_VOLCANO, group, stage.namespace)
    await stage.client.delete(PODS, mains[0], namespace=stage.namespace, grace_s=0)

    async def made_again() -> bool:
        """Whether the evicted pod is there again; a new group is admitted."""
        now = await read(stage.client, PODGROUPS_VOLCANO, group, stage.namespace)
        if now and before and now["metadata"]["uid"] != before["metadata"]["uid"]:
            await stage.admit()
        status = (await stage.job())["status"]
        return await stage.pods() == mains and status.get("retryCount") == 1

    await eventually(made_again, timeout_s=20)
    await stage.kubelet("Running", *mains)
    await becomes(lambda: seen(stage), {"phase": "Running", "running": 2, "retryCount": 1})


@pytest.mark.parametrize("either", ["embedded"], indirect=True)
async def test_surplus_pods_go_although_the_quota_refuses_the_pods_that_are_to_take_their_place(
    either: KubeClient,
) -> None:
    stage = Stage(either, "moved")
    there: set[str] = set()

    def full(verb: str, resource: Resource, name: str) -> KubeError | None:
        """A quota of two pods."""
        if resource != PODS:
            return None
        if verb == "delete":
            there.discard(name)
        elif len(there) == 2:
            return refused(403, "exceeded quota")
        else:
            there.add(name)
        return None

    async with running(either, refusing(full)):
        await stage.submit(a_task("main", 2), a_task("extra", 0), minAvailable=1)
        await becomes(stage.pods, ["moved-main-0", "moved-main-1"])
        await stage.kubelet("Running", "moved-main-0", "moved-main-1")
        await becomes(lambda: seen(stage), {"phase": "Running", "running": 2})
        job = await stage.job()
        tasks = [{**task, "replicas": 1} for task in job["spec"]["tasks"]]
        change = {"spec": {"tasks": tasks}}
        await either.patch(JOBS_VOLCANO, "moved", change, namespace=NS)
        await becomes(stage.pods, ["moved-extra-0", "moved-main-0"])


def all_of(resource: Resource, verb: str, status: int) -> Refuses:
    def refuses(given: str, kind: Resource, _name: str) -> KubeError | None:
        return refused(status) if (given, kind) == (verb, resource) else None

    return refuses


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize(
    "resource", [CONFIGMAPS, PODGROUPS_VOLCANO, VOLUME_CLAIMS], ids=lambda one: one.kind
)
@pytest.mark.parametrize("either", ["embedded"], indirect=True)
async def test_counts_stay_current_while_an_object_of_the_job_is_refused_to_its_next_controller(
    either: KubeClient, resource: Resource, status: int
) -> None:
    stage = Stage(either, "kept")
    volumes = [{"mountPath": "/data", "volumeClaim": CLAIM}]
    async with running(either, job_controller):
        await stage.submit(a_task("x", 3), plugins={"svc": []}, volumes=volumes, minAvailable=1)
        await becomes(stage.pods, ["kept-x-0", "kept-x-1", "kept-x-2"])
        await stage.kubelet("Running", "kept-x-0", "kept-x-1", "kept-x-2")
        await becomes(lambda: seen(stage), {"phase": "Running", "running": 3})
    group = f"kept-{stage.uid}"
    if resource == PODGROUPS_VOLCANO:
        # It is made again only if the job lacks a pod.
        await either.delete(PODGROUPS_VOLCANO, group, namespace=NS)
        await either.delete(PODS, "kept-x-2", namespace=NS, grace_s=0)
    await stage.kubelet("Succeeded", "kept-x-0")
    async with running(either, refusing(all_of(resource, "create", status))):
        left = 1 if resource == PODGROUPS_VOLCANO else 2
        await becomes(lambda: seen(stage), {"phase": "Running", "running": left, "succeeded": 1})


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize("either", ["embedded"], indirect=True)
async def test_a_job_ends_although_an_object_may_not_be_deleted_which_goes_when_it_may(
    either: KubeClient, status: int
) -> None:
    stage = Stage(either, "over")
    refusals = [all_of(CONFIGMAPS, "delete", status)]

    def refuses(verb: str, resource: Resource, name: str) -> KubeError | None:
        return refusals[0](verb, resource, name) if refusals else None

    async def hosts() -> bool:
        return await read(either, CONFIGMAPS, "over-svc", NS) is not None

    async with running(either, refusing(refuses)):
        await stage.submit(a_task("x", 1), plugins={"svc": []})
        await becomes(stage.pods, ["over-x-0"])
        await stage.kubelet("Running", "over-x-0")
        await becomes(stage.phase, "Running")
        await stage.command("TerminateJob")
        await becomes(stage.phase, "Terminated")
        assert await hosts()
        refusals.clear()
        await becomes(hosts, False)


@pytest.mark.parametrize("either", ["embedded"], indirect=True)
async def test_a_missing_claim_is_said_once_and_a_delayed_action_runs_meanwhile(
    either: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.controller.job_controller._OBSTACLE_S", 0.05)
    stage = Stage(either, "late")
    recorded: list[str] = []
    policies = [{"event": "TaskFailed", "action": "AbortJob", "timeout": "1s"}]
    await make(either, VOLUME_CLAIMS, {"metadata": {"name": "data"}, "spec": CLAIM}, NS)
    async with running(either, job_controller):
        await stage.submit(
            a_task("x", 1, maxRetry=1),
            volumes=[{"mountPath": "/data", "volumeClaimName": "data"}],
            policies=policies,
        )
        await becomes(stage.pods, ["late-x-0"])
        await stage.kubelet("Running", "late-x-0")
        await becomes(stage.phase, "Running")
    await either.delete(VOLUME_CLAIMS, "data", namespace=NS)
    async with running(either, job_controller) as runtime:
        record = runtime.events.record

        def recording(resource: Resource, about: Metadata, *events: ControllerEvent) -> None:
            recorded.extend(event.reason for event in events)
            record(resource, about, *events)

        monkeypatch.setattr(runtime.events, "record", recording)
        await eventually(lambda: "PVCError" in recorded)
        restarted = {"name": "main", "ready": True, "restartCount": 1, "image": "i", "imageID": ""}
        await either.patch(
            PODS,
            "late-x-0",
            {"status": {"containerStatuses": [restarted]}},
            namespace=NS,
            subresource="status",
        )
        await becomes(stage.phase, "Aborted")
    assert recorded.count("PVCError") == 1
    assert recorded.count("ExecuteAction") == 2  # The delay, and the action.


# The real control plane refuses.


async def a_policy_against(client: KubeClient, task: str, namespace: str) -> None:
    """Have a ValidatingAdmissionPolicy refuse the pods of a task, from when it is in force."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    policy: Object = {
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {"resourceRules": [{**rule, "operations": ["CREATE"]}]},
            "validations": [
                {
                    "expression": "object.metadata.namespace != "
                    f"'{namespace}' || !object.metadata.name.contains('-{task}-')",
                    "message": "not this one",
                }
            ],
        },
    }
    binding = {
        "metadata": {"name": namespace},
        "spec": {"policyName": namespace, "validationActions": ["Deny"]},
    }
    await make(client, ADMISSION_POLICIES, policy)
    await make(client, ADMISSION_POLICY_BINDINGS, binding)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"a-{task}-0"},
        "spec": {"containers": [{"name": "main", "image": "i"}]},
    }

    async def in_force() -> bool:
        try:
            await client.create(PODS, pod, namespace=namespace, dry_run=True)
        except ApiError:
            return True
        return False

    await eventually(in_force, timeout_s=30)


async def said_once(stage: Stage, text: str) -> None:
    """The Job has one Event that names the refusal."""
    # Three more tries of the controller.
    await asyncio.sleep(7)
    said = await events(stage.client, stage.namespace, stage.name)
    assert [text in message for _, why, message in said if why == "FailedCreate"] == [True]


@pytest.mark.integration
@pytest.mark.parametrize("either", ["real"], indirect=True)
@pytest.mark.parametrize("action", ["RestartTask", "RestartPod", "RestartJob"])
async def test_a_policy_that_refuses_a_task_leaves_the_rest_running_also_after_a_retry(
    either: KubeClient, place: str, action: str
) -> None:
    stage = Stage(either, "most", place)
    await a_policy_against(either, "extra", place)
    policies = [{"event": EVICTED, "action": action}]
    try:
        async with running(either, job_controller) as runtime:
            await stage.submit(
                a_task("main", 2), a_task("extra", 2), minAvailable=2, policies=policies
            )
            await restarts_once(stage)
            await said_once(stage, "not this one")
            await runtime.events.flush()
    finally:
        await either.delete(ADMISSION_POLICY_BINDINGS, place)
        await either.delete(ADMISSION_POLICIES, place)


@pytest.mark.integration
@pytest.mark.parametrize("either", ["real"], indirect=True)
async def test_a_quota_below_a_jobs_replicas_leaves_its_minimum_running(
    either: KubeClient, place: str
) -> None:
    hard = {"requests.cpu": "50m"}
    quota = {"metadata": {"name": "five"}, "spec": {"hard": hard}}
    await make(either, RESOURCE_QUOTAS, quota, place)
    # The quota's controller does not run here.
    status = {"status": {"hard": hard, "used": {"requests.cpu": "0"}}}
    await either.patch(RESOURCE_QUOTAS, "five", status, namespace=place, subresource="status")
    stage = Stage(either, "eight", place)
    async with running(either, job_controller):
        await stage.submit(a_task("x", 8), minAvailable=3)

        async def made() -> bool:
            return len(await stage.pods()) == 5

        await eventually(made, timeout_s=20)
        await stage.kubelet("Running", *await stage.pods())
        await becomes(lambda: seen(stage), {"phase": "Running", "running": 5})
        await said_once(stage, "exceeded quota: five")
