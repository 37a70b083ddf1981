"""A tenant with a small quota declares large `minResources` and endless durations, on a real API
server: another namespace's gang is bound beside it, and operators see which gang reserves what.

Before reservations were charged to quotas, the pod of 10 m CPU kept eight of ten nodes for 31
years, and the other gang waited.
"""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from shared.contracts import annotations
from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import (
    NodeShape,
    create_namespace,
    create_nodes,
    create_pods,
    delete_pods,
    pod_manifest,
)
from tests.integration.suite import RunningSuite, running_suite
from tests.support.waiting import eventually
from tests.tutti.up.running import tutti

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]

_SEEN_S: Final = 20.0
_GROUPS: Final = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"
_ENDLESS: Final = {
    annotations.RESERVE_SECONDS: "999999999",
    annotations.HOLD_SECONDS: "999999999",
}


@pytest.fixture
async def tenants(api: RawClient, empty_cluster: None) -> AsyncIterator[tuple[str, str]]:
    """The namespaces of a hostile tenant, with a quota of one CPU, and of another one."""
    names = f"evil-{uuid.uuid4().hex[:8]}", f"prod-{uuid.uuid4().hex[:8]}"
    for name in names:
        await create_namespace(api, name)
    hard = {"requests.cpu": "1"}
    quotas = f"/api/v1/namespaces/{names[0]}/resourcequotas"
    await api.create(quotas, {"metadata": {"name": "small"}, "spec": {"hard": hard}})
    # No controller runs that would fill it in; the API server admits pods by the status.
    status = {"status": {"hard": hard, "used": {"requests.cpu": "0"}}}
    await api.patch(f"{quotas}/small/status", status)
    yield names
    for name in names:
        await api.delete(_GROUPS.format(name))
        await delete_pods(api, name)


async def submit(
    api: RawClient,
    namespace: str,
    name: str,
    count: int,
    cpu: str,
    *,
    notes: dict[str, str] | None = None,
    **spec: object,
) -> None:
    group: Object = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "annotations": notes or {}},
        "spec": {"minMember": count, **spec},
    }
    await api.create(_GROUPS.format(namespace), group)
    pods = [
        pod_manifest(
            f"{name}-{index}",
            requests={"cpu": cpu},
            scheduler_name="tutti",
            annotations={annotations.GROUP_NAME: name},
        )
        for index in range(count)
    ]
    await create_pods(api, namespace, pods)


async def bound(api: RawClient, namespace: str, count: int) -> None:
    async def all_bound() -> bool:
        pods = (await api.get(f"/api/v1/namespaces/{namespace}/pods"))["items"]
        return sum(bool(pod["spec"].get("nodeName")) for pod in pods) == count

    await eventually(all_bound, timeout_s=_SEEN_S, because=f"{count} pods are bound")


async def condition(api: RawClient, namespace: str, name: str, kind: str) -> str:
    """The message of a condition of a group, once it is True."""

    async def message() -> str:
        group = await api.get(f"{_GROUPS.format(namespace)}/{name}")
        found = {one["type"]: one for one in group.get("status", {}).get("conditions", ())}
        assert found.get(kind, {}).get("status") == "True", found
        return str(found[kind]["message"])

    return await eventually(message, timeout_s=_SEEN_S, because=f"the group has {kind}")


async def queues_say(suite: RunningSuite, words: str) -> None:
    """Wait until `tutti queues` prints these words: the standby that answers reads in batches."""

    async def said() -> bool:
        status, text, errors = await tutti("queues", f"--kubeconfig={suite.kubeconfig}")
        assert status == 0, errors
        assert words in text, text
        return True

    await eventually(said, timeout_s=_SEEN_S, because=f"tutti queues prints {words}")


async def test_a_small_quota_reserves_little_and_operators_see_the_owner_and_the_end(
    control_plane: ControlPlane, api: RawClient, tenants: tuple[str, str], tmp_path: Path
) -> None:
    evil, prod = tenants
    with running_suite(control_plane.admin_kubeconfig, tmp_path, "--no-webhook", "--api") as suite:
        await create_nodes(api, 10, NodeShape(cpu_milli=4_000))
        await submit(api, evil, "grab", 1, "10m", notes=_ENDLESS, minResources={"cpu": "31500m"})
        await bound(api, evil, 1)
        await submit(api, prod, "work", 10, "3")
        await bound(api, prod, 10)

        held = await condition(api, evil, "grab", "RoomHeld")
        assert "990m cpu of its minResources reserved" in held
        shortened = await condition(api, evil, "grab", "DurationShortened")
        assert "999999999 s is above the ceiling of 900 s (--reserve-s-max)" in shortened
        assert "999999999 s is above the ceiling of 600 s (--hold-s-max)" in shortened
        await queues_say(suite, f"990m cpu reserved for {evil}/grab (MinResources) until 20")
