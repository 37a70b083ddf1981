"""A tenant writes the UIDs of another tenant's objects, or nonsense, into the owner references of
its own pods and budgets, on a real API server. No other tenant notices.
"""

import uuid
from collections.abc import AsyncIterator
from typing import Final

import pytest
from typing_extensions import override

from shared.contracts import annotations
from tests.controlplane.client import Object, RawClient
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.nodes import create_namespace, create_pods, pod_manifest, remove_namespace
from tests.integration.stage import Stage
from tests.support.background import in_background
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]

#: The attack deletes prod's pods after 5 s; a pod that fits is bound within one.
DEADLINE_S: Final = 2
AFTER_S: Final = 6.0
_STUCK: Final = "stuck"
#: No garbage collector knows the kind, so it leaves the objects.
_KIND: Final = {"apiVersion": "example.org/v1", "kind": "Training", "name": "train"}
HOSTILE_UIDS: Final = (
    *("a b", "..", ".", "a.*", ">", "*", "A_b", "ünïcode", "a\r\nPUB x 0"),
    "x" * 4_000,
)


class PartialKubelet(FakeKubelet):
    """Kubelets on which pods of one name never start."""

    @override
    def see_pod(self, kind: str, pod: Object) -> None:
        stuck = pod["metadata"]["name"].startswith(_STUCK)
        if kind == "DELETED" or not stuck or pod["metadata"].get("deletionTimestamp"):
            super().see_pod(kind, pod)


@pytest.fixture
async def kubelet(api: RawClient) -> AsyncIterator[FakeKubelet]:
    fake = PartialKubelet(api)
    async with in_background(fake.run(), name="fake-kubelet"):
        yield fake


@pytest.fixture
async def evil(stage: Stage) -> AsyncIterator[str]:
    """The namespace of the other tenant."""
    name = f"evil-{uuid.uuid4().hex[:8]}"
    await create_namespace(stage.api, name)
    yield name
    await stage.api.delete(f"/apis/policy/v1/namespaces/{name}/poddisruptionbudgets")
    await remove_namespace(stage.api, name)


def owned(uid: str) -> Object:
    return {**_KIND, "uid": uid, "controller": True}


def pods(prefix: str, count: int, uid: str, *, minimum: int = 0, cpu: str = "1") -> list[Object]:
    notes = {annotations.GROUP_MIN_MEMBER: str(minimum)} if minimum else {}
    return [
        pod_manifest(
            f"{prefix}-{number}",
            requests={"cpu": cpu},
            scheduler_name="kube-batch",
            annotations=notes,
            owner=owned(uid),
        )
        for number in range(count)
    ]


def budget(uid: str, size: int) -> Object:
    deadline = {annotations.START_DEADLINE_SECONDS: str(DEADLINE_S)}
    return {
        "metadata": {"name": "train", "annotations": deadline, "ownerReferences": [owned(uid)]},
        "spec": {"minAvailable": size, "selector": {"matchLabels": {"app": "train"}}},
    }


async def job_uid(stage: Stage) -> str:
    """The UID of an object in prod's namespace."""
    path = f"/api/v1/namespaces/{stage.namespace}/configmaps"
    made = await stage.api.create(path, {"metadata": {"name": "train"}})
    return str(made["metadata"]["uid"])


async def running(stage: Stage, count: int) -> set[str]:
    """Wait until so many of prod's pods run: their UIDs."""

    async def all_run() -> set[str]:
        found = [pod for pod in await stage.pods() if pod["status"].get("phase") == "Running"]
        assert len(found) == count
        return {pod["metadata"]["uid"] for pod in found}

    return await eventually(all_run, timeout_s=30.0, because="prod's pods run")


async def test_a_budget_and_a_pod_of_another_namespace_delete_none_of_a_jobs_pods(
    stage: Stage, evil: str
) -> None:
    """Both have the Job's UID; the pod never starts, and the budget has a deadline."""
    await stage.nodes(2)
    uid = await job_uid(stage)
    budgets = f"/apis/policy/v1/namespaces/{evil}/poddisruptionbudgets"
    await stage.api.create(budgets, budget(uid, 5))
    await create_pods(stage.api, evil, pods(_STUCK, 1, uid))
    await create_pods(stage.api, stage.namespace, pods("train", 4, uid, minimum=4))
    before = await running(stage, 4)
    with pytest.raises(AssertionError):
        await eventually(lambda: _lost(stage, before), timeout_s=AFTER_S)


async def _lost(stage: Stage, before: set[str]) -> bool:
    found = await stage.pods()
    left = {one["metadata"]["uid"] for one in found if not one["metadata"].get("deletionTimestamp")}
    assert before - left, "none of prod's pods was deleted"
    return True


async def test_pods_of_another_namespace_do_not_make_a_jobs_gang_whole(
    stage: Stage, evil: str
) -> None:
    await stage.nodes(2)
    uid = await job_uid(stage)
    await create_pods(stage.api, evil, pods("filler", 2, uid, minimum=4))
    await create_pods(stage.api, stage.namespace, pods("train", 3, uid, minimum=4))
    await stage.stays_unbound("")
    await create_pods(stage.api, stage.namespace, pods("last", 1, uid, minimum=4))
    assert len(await running(stage, 4)) == 4


async def test_pods_with_any_owner_uid_are_bound_and_stop_no_service(
    stage: Stage, evil: str
) -> None:
    """One of each is bound, and one does not fit and gets a verdict."""
    before = await stage.suite.pids()
    await stage.nodes(4)
    for number, uid in enumerate(HOSTILE_UIDS):
        fits = pods(f"fits-{number}", 1, uid, cpu="100m")
        waits = pods(f"waits-{number}", 1, uid, cpu="99")
        implied = pods(f"implied-{number}", 1, uid, cpu="100m")
        for pod in implied:
            pod["spec"]["schedulerName"] = "volcano"
        await create_pods(stage.api, evil, [*fits, *waits, *implied])

    async def all_bound() -> bool:
        found = (await stage.api.get(f"/api/v1/namespaces/{evil}/pods"))["items"]
        bound = [one["metadata"]["name"] for one in found if one["spec"].get("nodeName")]
        assert len(bound) == 2 * len(HOSTILE_UIDS), sorted(bound)
        return not [name for name in bound if name.startswith("waits")]

    assert await eventually(all_bound, timeout_s=30.0, because="evil's pods are bound as any")
    await stage.gang("good", 3)
    await stage.bound("good", 3)
    assert await stage.suite.pids() == before
