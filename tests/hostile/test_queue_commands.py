"""Queues closed by Commands, on a real API server with RBAC: a tenant with the rights that
Tutti adds to `edit` in one namespace, and a user who may update queues besides.
"""

import uuid
from typing import Final

import pytest

from services.controller.queue_command_policy import SETTLE_MS
from shared.kube.resources import COMMANDS, QUEUES_VOLCANO
from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.kubeconfig import write_kubeconfig
from tests.integration.stage import Stage
from tests.support.waiting import eventually
from tutti.rights.rules import user_roles

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]

RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
POLICIES: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_QUEUES: Final = QUEUES_VOLCANO.path("")
_SETTLED_S: Final = SETTLE_MS / 1000 + 15


async def account(stage: Stage, control_plane: ControlPlane, *, updates: str = "") -> RawClient:
    """A client of a new ServiceAccount with the rules of Tutti's `edit` in the stage's namespace,
    and with the right to update one queue.
    """
    api, namespace = stage.api, stage.namespace
    name = f"user-{uuid.uuid4().hex[:6]}"
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await api.create(accounts, {"metadata": {"name": name}})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    role = {"metadata": {"name": name}, "rules": user_roles()["edit"]["rules"]}
    await api.create(f"{RBAC}/namespaces/{namespace}/roles", role)
    binding: Object = {"metadata": {"name": name}, "subjects": [subject]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "name": name}
    await api.create(
        f"{RBAC}/namespaces/{namespace}/rolebindings",
        binding | {"roleRef": reference | {"kind": "Role"}},
    )
    if updates:
        rule = {
            "apiGroups": [QUEUES_VOLCANO.group],
            "resources": [QUEUES_VOLCANO.plural],
            "verbs": ["update"],
            "resourceNames": [updates],
        }
        await api.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
        await api.create(
            f"{RBAC}/clusterrolebindings",
            binding | {"roleRef": reference | {"kind": "ClusterRole"}},
        )
    request = {"spec": {"expirationSeconds": 3600}}
    token = (await api.create(f"{accounts}/{name}/token", request))["status"]["token"]
    path = control_plane.dir / f"{namespace}-{name}.kubeconfig"
    return RawClient(
        write_kubeconfig(
            path,
            server=control_plane.server,
            ca_pem=control_plane.authority.certificate_pem,
            credentials=token,
            namespace=namespace,
        )
    )


def order(queue: Object, action: str = "CloseQueue", **target: str) -> Object:
    metadata = queue["metadata"]
    return {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {"name": f"order-{uuid.uuid4().hex[:6]}"},
        "action": action,
        "target": {
            "apiVersion": QUEUES_VOLCANO.api_version,
            "kind": QUEUES_VOLCANO.kind,
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        | target,
    }


async def open_queue(stage: Stage, name: str) -> Object:
    manifest = {
        "apiVersion": QUEUES_VOLCANO.api_version,
        "kind": QUEUES_VOLCANO.kind,
        "metadata": {"name": name},
        "spec": {"weight": 1},
    }
    queue = await stage.api.create(_QUEUES, manifest)
    await queue_is(stage, name, "Open")
    return queue


async def until_enforced(tenant: RawClient, path: str, queue: Object) -> None:
    async def refused() -> bool:
        try:
            await tenant.request("POST", path, order(queue), params={"dryRun": "All"})
        except ApiError as error:
            return "requires the right to update" in str(error)
        raise AssertionError("the API server accepts the Command")

    await eventually(refused, timeout_s=20, because="the API server reviews Commands")


async def queue_is(stage: Stage, name: str, state: str) -> None:
    async def seen() -> bool:
        found = await stage.api.get(f"{_QUEUES}/{name}")
        assert found.get("status", {}).get("state") == state, found
        return True

    await eventually(seen, timeout_s=20, because=f"{name} is {state}")


async def test_a_command_closes_a_queue_only_for_users_with_the_right_to_update_it(
    stage: Stage, control_plane: ControlPlane
) -> None:
    name = f"team-{uuid.uuid4().hex[:6]}"
    queue = await open_queue(stage, name)
    path = COMMANDS.path(stage.namespace)
    async with (
        await account(stage, control_plane) as tenant,
        await account(stage, control_plane, updates=name) as owner,
    ):
        await until_enforced(tenant, path, queue)
        for target in ({}, {"uid": ""}, {"apiVersion": "v1"}, {"name": "default"}):
            with pytest.raises(ApiError, match="requires the right to update"):
                await tenant.create(path, order(queue, **target))
        # A Command on a Job needs no right to queues, and is not turned into one on a queue.
        for_job = order(queue, "AbortJob", kind="Job", apiVersion="batch.volcano.sh/v1alpha1")
        for_job["metadata"]["finalizers"] = ["tests.tutti.dev/kept"]
        kept = f"{path}/{for_job['metadata']['name']}"
        await tenant.create(path, for_job)
        with pytest.raises(ApiError, match="requires the right to update"):
            await tenant.patch(kept, {"target": {"kind": "Queue"}})
        await tenant.patch(kept, {"metadata": {"finalizers": None}})
        await queue_is(stage, name, "Open")

        async def closes() -> bool:
            # Commands of the first seconds of the policy are refused with an Event.
            await owner.create(path, order(queue))
            await queue_is_soon(stage, name, "Closed")
            return True

        await eventually(closes, timeout_s=_SETTLED_S, because="its owner may close the queue")
        other = await stage.api.get(f"{_QUEUES}/default")
        with pytest.raises(ApiError, match="requires the right to update"):
            await owner.create(path, order(other))
    await stage.api.delete(f"{_QUEUES}/{name}")


async def queue_is_soon(stage: Stage, name: str, state: str) -> None:
    async def seen() -> bool:
        assert (await stage.api.get(f"{_QUEUES}/{name}"))["status"]["state"] == state
        return True

    await eventually(seen, timeout_s=3, because=f"{name} is {state}")


async def test_commands_that_came_in_while_the_policy_was_removed_close_nothing(
    stage: Stage, control_plane: ControlPlane
) -> None:
    name = f"team-{uuid.uuid4().hex[:6]}"
    queue = await open_queue(stage, name)
    path = COMMANDS.path(stage.namespace)
    await stage.api.delete(f"{POLICIES}/tutti-queue-commands")
    async with await account(stage, control_plane) as tenant:
        made: list[Object] = []

        async def accepted() -> bool:
            try:
                made.append(await tenant.create(path, order(queue)))
            except ApiError as error:
                raise AssertionError(str(error)) from None
            return True

        await eventually(accepted, timeout_s=20, because="nothing reviews Commands now")

        async def refused() -> bool:
            events = await stage.api.get(f"/api/v1/namespaces/{stage.namespace}/events")
            found = [
                event["message"]
                for event in events["items"]
                if event["reason"] == "CommandRefused"
                and event["involvedObject"]["name"] == made[0]["metadata"]["name"]
            ]
            assert ["older than the policy" in message for message in found] == [True], events
            return True

        await eventually(refused, timeout_s=20, because="the controller refuses the Command")
        await queue_is(stage, name, "Open")

        # The controller has put the policy back.
        await until_enforced(tenant, path, queue)
    await stage.api.delete(f"{_QUEUES}/{name}")
