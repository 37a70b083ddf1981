"""The Job controller on a cluster: what it makes of a Job, phase by phase.

The scheduler is played here (the group becomes Inqueue, pods are bound and get phases), so that
each test says what the controller sees.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from services.controller.core.jobs.step import JOB_NAME, SeenPod
from services.controller.reconciling.controller import Reconciler, Runtime
from services.controller.reconciling.writes import Keyed, Writes, Written
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.resources import (
    COMMANDS,
    CONFIGMAPS,
    JOBS_VOLCANO,
    PODGROUPS_VOLCANO,
    PODS,
    QUEUES_VOLCANO,
    Resource,
)
from tests.services.controller.job_stage import NS, Stage, a_task, job_controller
from tests.services.controller.playing import Object, becomes, events, make, read, running
from tests.support.faulty_cluster import FaultRule, FaultyCluster
from tests.support.waiting import eventually
from tutti.cluster.embedded import Settings
from tutti.manifests.crds import manifests


@pytest.mark.parametrize(
    ("name", "longest_s", "busy_for"),
    [("calm", 60.0, 0), ("busy", 60.0, 3), ("always-busy", 0.3, 10_000)],
)
async def test_counts_alone_wait_while_all_writers_are_busy_but_not_for_ever(
    either: KubeClient,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    longest_s: float,
    busy_for: int,
) -> None:
    looks: list[int] = []
    written: list[str] = []
    replace = Writes.replace_status

    def all_taken(writes: Writes) -> bool:
        """Busy for so many looks, at each of which nothing but that it is Pending was written."""
        if len(looks) < busy_for:
            looks.append(len(written))
            return True
        return False

    async def noted(self: Writes, resource: Resource, changed: Keyed) -> Written:
        # The cluster may have Jobs of other tests.
        if changed.metadata.name == name:
            written.append(name)
        return await replace(self, resource, changed)

    monkeypatch.setattr("services.controller.job_controller._COUNTS_EVERY_S", 0.05)
    monkeypatch.setattr("services.controller.job_controller._COUNTS_EVERY_S_MAX", longest_s)
    monkeypatch.setattr(Writes, "all_taken", property(all_taken))
    monkeypatch.setattr(Writes, "replace_status", noted)
    stage = Stage(either, name)
    async with running(either, job_controller):

        async def pending() -> int:
            return int((await stage.job()).get("status", {}).get("pending", 0))

        await stage.submit(a_task("x", 2))
        await becomes(pending, 2)
        assert set(looks) <= {0, 1}
        assert len(written) == 2


async def test_a_job_gets_its_group_then_its_pods_and_is_completed_when_they_succeed(
    either: KubeClient,
) -> None:
    stage = Stage(either, "thin")
    async with running(either, job_controller):
        await stage.submit(a_task("x", 2))
        await becomes(stage.pods, ["thin-x-0", "thin-x-1"])
        assert await stage.phase() == "Pending"
        await stage.kubelet("Running", "thin-x-0", "thin-x-1")
        await becomes(stage.phase, "Running")
        await stage.kubelet("Succeeded", "thin-x-0", "thin-x-1", exit_code=0)
        await becomes(stage.phase, "Completed")
        assert await stage.passed() == ["Pending", "Running", "Completed"]
        group = f"thin-{stage.uid}"
        await becomes(lambda: read(either, PODGROUPS_VOLCANO, group, NS), None)
    status = (await stage.job())["status"]
    assert status["succeeded"] == 2
    assert status["taskStatusCount"] == {"x": {"phase": {"Succeeded": 2}}}


async def test_hosts_are_written_before_the_pods_that_read_them_also_when_a_job_grows(
    either: KubeClient,
) -> None:
    stage = Stage(either, "hosts")

    async def hosts() -> tuple[str, int]:
        found = await read(either, CONFIGMAPS, "hosts-svc", NS)
        assert found is not None
        return found["data"]["x.host"], int(found["metadata"]["resourceVersion"])

    async def made(name: str) -> int:
        """When a pod that was never changed was made, as the API server counts writes."""
        found = await read(either, PODS, name, NS)
        assert found is not None
        return int(found["metadata"]["resourceVersion"])

    async with running(either, job_controller):
        await stage.submit(a_task("x", 1), plugins={"svc": []})
        await becomes(stage.pods, ["hosts-x-0"])
        names, written = await hosts()
        assert names == "hosts-x-0.hosts"
        assert written < await made("hosts-x-0")
        grown = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}]
        await either.patch(JOBS_VOLCANO, "hosts", grown, namespace=NS, patch_type="json")
        await becomes(stage.pods, ["hosts-x-0", "hosts-x-1", "hosts-x-2"])
        names, written = await hosts()
        assert names.split() == ["hosts-x-0.hosts", "hosts-x-1.hosts", "hosts-x-2.hosts"]
        assert written < min(await made("hosts-x-1"), await made("hosts-x-2"))


async def test_a_command_is_deleted_and_acts_once_and_a_resume_is_no_retry(
    either: KubeClient,
) -> None:
    stage = Stage(either, "ordered")
    async with running(either, job_controller) as runtime:
        await stage.submit(a_task("x", 1))
        await becomes(stage.pods, ["ordered-x-0"])
        await stage.kubelet("Running", "ordered-x-0")
        await becomes(stage.phase, "Running")
        await stage.command("AbortJob")
        await becomes(stage.phase, "Aborted")
        assert await stage.pods() == []
        assert await read(either, COMMANDS, "ordered-abortjob", NS) is None
        await stage.command("ResumeJob")
        await becomes(stage.phase, "Pending")
        await stage.admit()
        await becomes(stage.pods, ["ordered-x-0"])
        await runtime.events.flush()
    assert (await stage.job())["status"].get("retryCount", 0) == 0
    said = {message for _, reason, message in await events(either, NS, "ordered")}
    assert "Start to execute action AbortJob " in said


async def test_a_command_about_a_job_that_is_not_there_goes(either: KubeClient) -> None:
    about_no_pod = {
        "metadata": {"name": "about-nobody"},
        "action": "AbortJob",
        "target": {
            "apiVersion": JOBS_VOLCANO.api_version,
            "kind": "Job",
            "name": "nobody",
            "uid": "of-nobody",
        },
    }
    async with running(either, job_controller):
        await make(either, COMMANDS, about_no_pod, NS)
        await becomes(lambda: read(either, COMMANDS, "about-nobody", NS), None)


async def test_a_command_in_another_namespace_does_nothing_to_a_job_and_is_refused_there(
    either: KubeClient,
) -> None:
    """Also with the Job's name and UID, which every user may know."""
    stage = Stage(either, "elsewhere")
    async with running(either, job_controller) as runtime:
        await stage.submit(a_task("x", 1))
        await becomes(stage.pods, ["elsewhere-x-0"])
        target = {
            "apiVersion": JOBS_VOLCANO.api_version,
            "kind": "Job",
            "name": "elsewhere",
            "uid": stage.uid,
        }
        forged = {"metadata": {"name": "forged"}, "action": "AbortJob", "target": target}
        await make(either, COMMANDS, forged, "kube-system")
        await becomes(lambda: read(either, COMMANDS, "forged", "kube-system"), None)
        await runtime.events.flush()
        assert await stage.pods() == ["elsewhere-x-0"]
    message = "target.name: there is no Job of this name in the Command's namespace"
    assert await events(either, "kube-system", "forged") == [("Warning", "CommandRefused", message)]


async def test_a_pod_that_fails_restarts_the_job_whole_as_its_policy_says(
    either: KubeClient,
) -> None:
    stage = Stage(either, "restarted")
    async with running(either, job_controller):
        await stage.submit(
            a_task("x", 2), policies=[{"event": "PodFailed", "action": "RestartJob"}]
        )
        await becomes(stage.pods, ["restarted-x-0", "restarted-x-1"])
        await stage.kubelet("Running", "restarted-x-0", "restarted-x-1")
        await becomes(stage.phase, "Running")
        await stage.kubelet("Failed", "restarted-x-0", exit_code=1)
        await becomes(stage.pods, [])
        await becomes(stage.phase, "Pending")
        await stage.admit()
        await becomes(stage.pods, ["restarted-x-0", "restarted-x-1"])
    status = (await stage.job())["status"]
    assert (status["version"], status["retryCount"]) == (1, 1)
    pod = await read(either, PODS, "restarted-x-1", NS)
    assert pod is not None
    assert pod["metadata"]["annotations"]["volcano.sh/job-version"] == "1"


async def test_what_was_lost_while_no_controller_ran_is_answered_by_the_next_one(
    either: KubeClient,
) -> None:
    stage = Stage(either, "unwatched")
    evicted = [{"event": "PodEvicted", "action": "AbortJob"}]
    async with running(either, job_controller):
        await stage.submit(a_task("x", 2), policies=evicted)
        await becomes(stage.pods, ["unwatched-x-0", "unwatched-x-1"])
        await stage.kubelet("Running", "unwatched-x-0", "unwatched-x-1")

        async def counted() -> int:
            return int((await stage.job())["status"].get("running", 0))

        await becomes(counted, 2)
    await either.delete(PODS, "unwatched-x-0", namespace=NS, grace_s=0)
    async with running(either, job_controller):
        await becomes(stage.phase, "Aborted")


class _Meanwhile(Writes):
    """Writes during the first of which, of a status, something else happens."""

    def __init__(self, client: KubeClient, happens: Callable[[], Awaitable[object]]) -> None:
        super().__init__(client, per_s=1_000)
        self._happens: Callable[[], Awaitable[object]] | None = happens

    @override
    async def replace_status(self, *given: Any, **named: Any) -> Written:
        happens, self._happens = self._happens, None
        if happens is not None:
            await happens()
        return await super().replace_status(*given, **named)


async def test_what_is_lost_during_a_controllers_first_look_is_answered(
    either: KubeClient,
) -> None:
    """It looks again whenever its Lease was late. The pod was still there when it looked."""
    stage = Stage(either, "looked-at")
    evicted = [{"event": "PodEvicted", "action": "AbortJob"}]
    async with running(either, job_controller):
        await stage.submit(a_task("x", 2), policies=evicted)
        await becomes(stage.pods, ["looked-at-x-0", "looked-at-x-1"])
        await stage.kubelet("Running", "looked-at-x-0", "looked-at-x-1")
        await becomes(stage.phase, "Running")

    def looking(runtime: Runtime) -> Reconciler:
        pods = runtime.informers.of(PODS, SeenPod, label_selector=JOB_NAME)

        async def goes() -> None:
            await either.delete(PODS, "looked-at-x-0", namespace=NS, grace_s=0)
            await eventually(lambda: pods.get(f"{NS}/looked-at-x-0") is None)

        runtime.writes = _Meanwhile(either, goes)
        return job_controller(runtime)

    # Something to write at the first look: a pod has ended in between.
    await stage.kubelet("Succeeded", "looked-at-x-1")
    async with running(either, looking):
        await becomes(stage.phase, "Aborted")


async def test_a_job_restarted_in_a_closed_queue_goes_on_when_the_queue_opens(
    either: KubeClient,
) -> None:
    stage = Stage(either, "shut-out")
    queue = {"metadata": {"name": "shut-out"}, "spec": {"weight": 1}, "status": {"state": "Open"}}
    await make(either, QUEUES_VOLCANO, queue)

    async def turn(state: str) -> None:
        status = {"status": {"state": state}}
        await either.patch(QUEUES_VOLCANO, "shut-out", status, subresource="status")

    async def refused() -> bool:
        return "PodGroupError" in {why for _, why, _ in await events(either, NS, "shut-out")}

    try:
        async with running(either, job_controller):
            await stage.submit(a_task("x", 1), queue="shut-out")
            await becomes(stage.pods, ["shut-out-x-0"])
            await stage.kubelet("Running", "shut-out-x-0")
            await becomes(stage.phase, "Running")
            await turn("Closed")
            await stage.command("RestartJob")
            await eventually(refused)
            assert await stage.phase() == "Restarting"
            group = f"shut-out-{stage.uid}"
            assert await read(either, PODGROUPS_VOLCANO, group, NS) is None
            await turn("Open")
            await stage.admit()
            await becomes(stage.pods, ["shut-out-x-0"])
            assert (await stage.passed())[-2:] == ["Restarting", "Pending"]
    finally:
        await either.delete(QUEUES_VOLCANO, "shut-out")


async def test_pods_of_a_role_of_which_one_is_refused_are_not_all_tried(tmp_path: Path) -> None:
    async with FaultyCluster(Settings(nodes=0, crds=tuple(manifests()))) as cluster:
        refusal = FaultRule(verb="create", resource="pods", status=403)
        cluster.faults.rules = [refusal]
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        async with KubeClient(await load(str(path))) as client, running(client, job_controller):
            stage = Stage(client, "refused")
            await stage.submit(a_task("x", 200))

            async def reported() -> bool:
                return "FailedCreate" in {why for _, why, _ in await events(client, NS, "refused")}

            await eventually(reported)
            assert 0 < refusal.done < 100


@pytest.mark.parametrize("kills", [1, 3])
async def test_a_controller_that_is_killed_again_and_again_is_finished_by_the_next(
    either: KubeClient, kills: int
) -> None:
    name = f"killed-{kills}"
    stage = Stage(either, name)
    submitting = asyncio.create_task(stage.submit(a_task("x", 5)), name="submitting")
    for _ in range(kills):
        async with running(either, job_controller):
            await asyncio.sleep(0.05)
    async with running(either, job_controller):
        await submitting
        await becomes(stage.pods, [f"{name}-x-{index}" for index in range(5)])


@pytest.mark.parametrize("succeeds_first", [True, False])
async def test_a_pod_has_succeeded_only_if_it_had_before_its_deletion_was_requested(
    either: KubeClient, succeeds_first: bool
) -> None:
    """Also if the next controller sees the deletion."""
    name = f"taken-away-{succeeds_first}".lower()
    stage, pod = Stage(either, name), f"{name}-x-1"
    evicted = [{"event": "PodEvicted", "action": "AbortJob"}]
    held: Object = {"metadata": {"finalizers": ["example.com/held"]}}
    free: Object = {"metadata": {"finalizers": None}}
    async with running(either, job_controller):
        await stage.submit(a_task("x", 2), policies=evicted)
        await becomes(stage.pods, [f"{name}-x-{index}" for index in range(2)])
        await stage.kubelet("Running", *await stage.pods())
        await becomes(stage.phase, "Running")
        await either.patch(PODS, pod, held, namespace=NS)
        if succeeds_first:
            await stage.kubelet("Succeeded", pod)
    async with running(either, job_controller):
        await asyncio.sleep(1)
        await either.delete(PODS, pod, namespace=NS, grace_s=0)
        if not succeeds_first:
            await stage.kubelet("Succeeded", pod)
        await either.patch(PODS, pod, free, namespace=NS)
        if succeeds_first:
            await asyncio.sleep(1)
            assert await stage.pods() == [f"{name}-x-0"]
        await becomes(stage.phase, "Running" if succeeds_first else "Aborted")


async def test_a_pod_that_has_succeeded_and_is_gone_is_not_run_again_by_this_or_the_next_controller(
    either: KubeClient,
) -> None:
    name = "partly-done"
    stage = Stage(either, name)
    evicted = [{"event": "PodEvicted", "action": "AbortJob"}]
    async with running(either, job_controller):
        await stage.submit(a_task("x", 3), policies=evicted)
        await becomes(stage.pods, [f"{name}-x-{index}" for index in range(3)])
        await stage.kubelet("Running", *await stage.pods())
        await becomes(stage.phase, "Running")
        await stage.kubelet("Succeeded", f"{name}-x-1")

        async def succeeded() -> int:
            return int((await stage.job())["status"].get("succeeded", 0))

        await becomes(succeeded, 1)
        await either.delete(PODS, f"{name}-x-1", namespace=NS, grace_s=0)
        await asyncio.sleep(1)
        assert await stage.pods() == [f"{name}-x-0", f"{name}-x-2"]
    async with running(either, job_controller):
        await stage.kubelet("Succeeded", f"{name}-x-0")
        await becomes(succeeded, 2)
        assert await stage.pods() == [f"{name}-x-0", f"{name}-x-2"]
        await stage.kubelet("Succeeded", f"{name}-x-2")
        await becomes(stage.phase, "Completed")
        assert await succeeded() == 3
