"""What one tenant sees and gets is the same whether another one is hostile or absent.

The same events are played in one namespace twice on a real API server: alone, and while a tenant
with `edit` in another namespace does everything that the role lets it. Then everything that the
first tenant can see of its gangs is compared.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import pytest
from typing_extensions import override

from shared.contracts import annotations
from shared.dialects.discovery import kinds
from tests.controlplane.client import ApiError, Object
from tests.controlplane.nodes import create_namespace, create_pods, pod_manifest, remove_namespace
from tests.hostile.tenant import ATTEMPTS, POOL, Tenant, tenant_of
from tests.integration.stage import VOLCANO, Stage
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.integration,
    pytest.mark.certify,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

#: Kinds that `edit` lets a tenant write and that no attempt writes, and why that is enough.
_HARMLESS: Final = {
    "jobs": "its pods are judged, not the Job; forge_owners names Jobs",
}
_NODES: Final = 4
_BOUND_S: Final = 30.0


async def prepared(stage: Stage) -> list[Object]:
    """Two gangs that run and one that waits; the objects that others might name."""
    train = await stage.group("train", 3)
    pods = await stage.members("train", 3)
    path = f"/api/v1/namespaces/{stage.namespace}/configmaps"
    owner = await stage.api.create(path, {"metadata": {"name": "legacy"}})
    owner |= {"apiVersion": "v1", "kind": "ConfigMap"}
    notes = {annotations.GROUP_MIN_MEMBER: "4", annotations.START_DEADLINE_SECONDS: "60"}
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "controller": True}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    legacy = [
        pod_manifest(
            f"legacy-{number}",
            requests={"cpu": "1"},
            scheduler_name="kube-batch",
            annotations=notes,
            owner=reference,
        )
        for number in range(4)
    ]
    legacy = await create_pods(stage.api, stage.namespace, legacy)
    await stage.gang("big", 40)
    await stage.bound("train", 3)
    await eventually(_all_placed(stage, "legacy", 4), timeout_s=_BOUND_S, because="legacy is bound")
    await stage.waits("big", "NotEnoughResources")
    return [train, owner, pods[0] | {"apiVersion": "v1", "kind": "Pod"}]


def _all_placed(stage: Stage, prefix: str, count: int) -> Callable[[], Awaitable[bool]]:
    async def placed() -> bool:
        found = [name for name in await stage.placed() if name.startswith(prefix)]
        return len(found) == count

    return placed


async def continued(stage: Stage) -> None:
    """What the tenant does later: another gang, and a pod that is made again."""
    await stage.gang("late", 3)
    await stage.bound("late", 3, timeout_s=_BOUND_S)
    await stage.delete_pods(["train-1"])
    await stage.members("train", 1, prefix="train-again")
    await stage.bound("train", 3, timeout_s=_BOUND_S)


async def seen(stage: Stage) -> dict[str, object]:
    """Everything that a user of the namespace can see of its gangs, without times, UIDs and nodes'
    names.
    """
    found: dict[str, object] = {}
    for name in ("train", "late", "big"):
        status = (await stage.seen_group(name)).get("status", {})
        conditions = status.get("conditions", ())
        found[f"group {name}"] = (
            sorted(
                (one["type"], one.get("reason", ""), _plain(one.get("message", "")))
                for one in conditions
                # Which others were true for a moment depends on when statuses were written.
                if one["status"] == "True"
            ),
            status.get("phase"),
        )
    pods = await stage.pods()
    found["pods"] = sorted(
        (pod["metadata"]["name"], bool(pod["spec"].get("nodeName")), pod["status"].get("phase"))
        for pod in pods
    )
    listed = await stage.api.get(f"/api/v1/namespaces/{stage.namespace}/events")
    found["events"] = sorted(
        {
            (one["involvedObject"]["name"], one["reason"], _plain(one["message"]))
            for one in listed["items"]
            if "big" not in one["involvedObject"]["name"]
        }
    )
    lines = _plain(await stage.why("podgroup/big", "waits")).splitlines()
    found["why big"] = [
        # Words in order, because gangs that hold as much are named in the order of their bindings.
        sorted(re.split(r"[\s,]+", line))
        for line in lines
        if not line.startswith(("  since", "  as of"))
    ]
    queues = await stage.api.get(f"/apis/{VOLCANO}/queues")
    found["queues"] = [
        (one["metadata"]["name"], one.get("status", {}).get("state")) for one in queues["items"]
    ]
    return found


def _plain(text: str) -> str:
    text = re.sub(r"node-\d+", "NODE", text)
    text = re.sub(r"test-[0-9a-f]{10}|alone|beside", "NAMESPACE", text)
    return re.sub(r"\d+(\.\d+)? ?(s|ms|m)\b|\d\d:\d\d:\d\d", "TIME", text)


@asynccontextmanager
async def played(
    stage: Stage, namespace: str, tenant: Tenant | None
) -> AsyncIterator[dict[str, object]]:
    """What is seen after the events in a namespace of this name, while the tenant attacks."""
    await create_namespace(stage.api, namespace)
    stage = replace(stage, namespace=namespace)
    try:
        targets = await prepared(stage)
        if tenant is not None:
            for attempt in ATTEMPTS:
                await attempt(tenant, targets)
        await continued(stage)
        yield await settled(stage)
    finally:
        await stage.api.delete(f"/apis/{VOLCANO}/namespaces/{namespace}/podgroups")
        await remove_namespace(stage.api, namespace)


async def settled(stage: Stage) -> dict[str, object]:
    """What is seen once it has been the same twice: statuses follow bindings by a second or two."""
    before: dict[str, object] = {}

    async def same() -> dict[str, object]:
        nonlocal before
        for name in ("train", "late"):
            assert (await stage.seen_group(name))["status"]["phase"] == "Running"
        last, before = before, await seen(stage)
        return before if before == last else {}

    return await eventually(same, timeout_s=_BOUND_S, poll_s=3.0, because="statuses are final")


async def test_a_tenant_sees_and_gets_the_same_beside_a_hostile_one(stage: Stage) -> None:
    before = await stage.suite.pids()
    await stage.nodes(_NODES)
    taint = {"key": "pool", "value": "evil", "effect": "NoSchedule"}
    await stage.nodes(1, prefix="evil-", labels=POOL, taints=[taint])
    async with played(stage, "alone", None) as alone:
        pass
    async with (
        tenant_of(stage.control_plane, stage.api, stage.namespace) as tenant,
        played(stage, "beside", tenant) as beside,
    ):
        assert tenant.stored > 200, tenant.refused
        assert tenant.refused, "the quota refuses some of its pods"
        assert {key: value for key, value in beside.items() if value != alone[key]} == {}
        assert await stage.suite.pids() == before


async def test_each_kind_that_edit_may_write_is_tried(stage: Stage) -> None:
    """A kind that a new dialect reads must be attacked, too."""
    written: set[str] = set()

    class Recorded(Tenant):
        @override
        async def create(self, version: str, plural: str, manifest: Object) -> Object | None:
            written.add(plural)
            return await super().create(version, plural, manifest)

    async with tenant_of(stage.control_plane, stage.api, stage.namespace) as tenant:
        target: Object = {"apiVersion": "batch/v1", "kind": "Job"}
        target |= {"metadata": {"name": "j", "uid": "u", "namespace": "elsewhere"}}
        for attempt in ATTEMPTS:
            await attempt(Recorded(tenant.api, stage.namespace), [target])
        may = {one.resource for one in kinds() if one.resource.namespaced}
        missed = {
            one.plural
            for one in may
            if one.plural not in written | set(_HARMLESS)
            and await _may_create(tenant, one.group, one.plural)
        }
    assert missed == set()


async def _may_create(tenant: Tenant, group: str, plural: str) -> bool:
    attributes = {"namespace": tenant.namespace, "verb": "create"}
    attributes |= {"group": group, "resource": plural}
    review = {"spec": {"resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    try:
        return bool((await tenant.api.create(path, review))["status"]["allowed"])
    except ApiError:
        return False
