"""Gangs that cannot be whole, on a real API server: their bound pods are released, capacity is held
for lost members, and the verdicts and Events say why.

The poison is a ValidatingAdmissionPolicy that refuses one member's binding. Controllers are the
cluster's own: they make released pods again under their names.
"""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import pytest

from shared.contracts import annotations
from shared.contracts.verdicts import Verdict
from tests.controlplane.client import ApiError, Object
from tests.controlplane.nodes import pod_manifest
from tests.integration.auditor import GangRecord
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1"
POISONED: Final = "poison-3"
WORDS: Final = "this member may not be bound"
SIZE: Final = 8
#: Another gang is not to notice: a decision and eight bindings, on a machine with other work.
UNDELAYED_S: Final = 15.0
#: From the first binding of a poisoned gang until nothing of it is bound; the deadline is 30 s.
AT_ONCE_S: Final = 10.0
ATTEMPTS_S: Final = 40.0
logger = logging.getLogger(__name__)

_VERDICT = msgspec.json.Decoder(Verdict)


@asynccontextmanager
async def refusing(stage: Stage, *, dry_runs: bool = True) -> AsyncIterator[None]:
    """The API server refuses the poisoned member's binding in this namespace, while this lasts."""
    name = f"poison-{stage.namespace}"
    refused = f"object.metadata.name.contains('{POISONED}')"
    if not dry_runs:
        refused += " && !(has(request.dryRun) && request.dryRun)"
    bindings = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    policy: Object = {
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{**bindings, "resources": ["pods/binding"]}]},
            "validations": [{"expression": f"!({refused})", "message": WORDS}],
        },
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}
    use: Object = {
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": here},
        },
    }
    await stage.api.create(f"{REGISTRATION}/validatingadmissionpolicies", policy)
    await stage.api.create(f"{REGISTRATION}/validatingadmissionpolicybindings", use)
    try:
        await eventually(lambda: _refused(stage, dry_run=dry_runs), timeout_s=SEEN_S)
        yield
    finally:
        for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            await stage.delete(f"{REGISTRATION}/{kind}/{name}")


async def _refused(stage: Stage, *, dry_run: bool) -> bool:
    """Whether the policy is in force already: it takes the API server a moment."""
    name = f"probe-{POISONED}"
    if name not in {pod["metadata"]["name"] for pod in await stage.pods()}:
        probe = pod_manifest(name, requests={}, scheduler_name="nobody")
        await stage.bare_pods(probe)
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "nowhere"}}
    params = {"dryRun": "All"} if dry_run else {}
    path = f"{stage.path(name=name)}/binding"
    try:
        await stage.api.request("POST", path, binding, params=params)
    except ApiError as error:
        if WORDS not in str(error):
            raise
        await stage.delete_pods([name])
        return True
    await stage.delete_pods([name])
    return False


def stateful_set(name: str, replicas: int) -> Object:
    """Pods of stable names, all made at once; deleted ones are made again."""
    container = {
        "name": "main",
        "image": "registry.example/none",
        "resources": {"requests": {"cpu": "1"}},
    }
    metadata = {"labels": {"app": name}, "annotations": {annotations.GROUP_NAME: name}}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": metadata,
                "spec": {
                    "schedulerName": "tutti",
                    "terminationGracePeriodSeconds": 1,
                    "containers": [container],
                },
            },
        },
    }


def indexed_job(name: str, pods: int) -> Object:
    """A batch Job whose pods are numbered: a released one would cost it a retry."""
    template = stateful_set(name, pods)["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    counts = {"completions": pods, "parallelism": pods, "completionMode": "Indexed"}
    return {"metadata": {"name": name}, "spec": {**counts, "template": template}}


def record(stage: Stage, gang: str) -> GangRecord:
    return stage.audit.gangs.get((stage.namespace, gang)) or GangRecord((stage.namespace, gang))


async def verdict(stage: Stage, gang: str) -> Verdict:
    notes = (await stage.seen_group(gang))["metadata"].get("annotations", {})
    assert annotations.VERDICT in notes, "no verdict yet"
    return _VERDICT.decode(notes[annotations.VERDICT])


async def attempted(stage: Stage, gang: str, times: int) -> Verdict:
    """Wait until a gang has been tried so often."""

    async def tried() -> Verdict:
        found = await verdict(stage, gang)
        assert found.attempt >= times, f"{found.attempt} attempts"
        return found

    return await eventually(tried, timeout_s=ATTEMPTS_S, because=f"{gang} is tried again")


async def condition(stage: Stage, gang: str, type_: str, status: str, words: str = "") -> Object:
    """Wait until the group shows a condition, in these words: counts follow within a second."""

    async def shown() -> Object:
        found = (await stage.seen_group(gang)).get("status", {}).get("conditions", ())
        fitting = [one for one in found if (one["type"], one["status"]) == (type_, status)]
        assert fitting, found
        assert words in fitting[0]["message"], fitting
        return dict(fitting[0])

    return await eventually(shown, timeout_s=SEEN_S, because=f"{type_} is {status}")


async def event(stage: Stage, gang: str, reason: str) -> Object:
    """Wait for the one event of this reason on a group."""
    uid = (await stage.seen_group(gang))["metadata"]["uid"]

    async def reported() -> Object:
        found = await stage.api.get(stage.path("events"))
        fitting = [
            one
            for one in found["items"]
            if (one["involvedObject"]["uid"], one["reason"]) == (uid, reason)
        ]
        assert len(fitting) == 1, [(one["reason"], one["message"]) for one in found["items"]]
        return dict(fitting[0])

    return await eventually(reported, timeout_s=SEEN_S, because=f"{reason} is reported once")


async def others_come_in(stage: Stage, names: tuple[str, ...]) -> None:
    """Gangs that need what the poisoned one would take; each is whole in no time."""
    for name in names:
        began_s = time.monotonic()
        await stage.gang(name, SIZE)
        await stage.bound(name, SIZE, timeout_s=UNDELAYED_S)
        logger.info("%s is bound %.2f s after its group was made", name, time.monotonic() - began_s)
        await stage.delete_pods([f"{name}-{index}" for index in range(SIZE)])


async def test_a_poisoned_gang_is_bound_in_part_at_most_once_and_released_at_once(
    stage: Stage,
) -> None:
    await stage.nodes(2)
    async with refusing(stage):
        await stage.group("poison", SIZE)
        sets = stage.path("statefulsets", version="apps/v1")
        await stage.api.create(sets, stateful_set("poison", SIZE))
        message = await stage.waits("poison", "BindingRefused", WORDS)
        assert POISONED in message
        released = await event(stage, "poison", "GangReleased")
        assert (released["type"], WORDS in released["message"]) == ("Warning", True)
        assert WORDS in (await event(stage, "poison", "BindingRefused"))["message"]
        over = await condition(stage, "poison", "Releasing", "False")
        assert over["reason"] == "Released"
        await attempted(stage, "poison", 3)
        await stage.why("podgroup/poison", "waits: the API server refused to bind", WORDS)
        first = record(stage, "poison")
        assert len(first.ever_bound) <= SIZE - 1
        assert len(first.taken_back_s) <= 1, "bound in part more than once"
        assert all(lasted_s < AT_ONCE_S for lasted_s in first.taken_back_s)
        logger.info("bound in part, and all released after: %s s", first.taken_back_s)
        await others_come_in(stage, ("one", "two"))
        assert record(stage, "poison").ever_bound == first.ever_bound
    await stage.bound("poison", SIZE, timeout_s=ATTEMPTS_S)


@pytest.mark.parametrize("owner", ["nobody", "batch-job"])
async def test_of_a_poisoned_gang_whose_release_would_cost_nothing_is_ever_bound(
    stage: Stage, owner: str
) -> None:
    await stage.nodes(2)
    async with refusing(stage):
        await stage.group("poison", SIZE)
        if owner == "nobody":
            await stage.members("poison", SIZE)
        else:
            jobs = stage.path("jobs", version="batch/v1")
            await stage.api.create(jobs, indexed_job("poison", SIZE))
        await stage.waits("poison", "BindingRefused", WORDS)
        await attempted(stage, "poison", 3)
        await others_come_in(stage, ("one", "two"))
        assert record(stage, "poison").ever_bound == set()
        assert len(await stage.pods("poison")) == SIZE


async def test_bare_pods_that_slip_through_are_left_and_named_until_they_are_whole(
    stage: Stage,
) -> None:
    """The policy lets dry runs pass: no proof can know."""
    await stage.nodes(2)
    async with refusing(stage, dry_runs=False):
        await stage.gang("poison", SIZE)
        words = f"{SIZE - 1} of {SIZE} members are bound"
        shown = await condition(stage, "poison", "PartlyBound", "True", words)
        assert "poison-0" in shown["message"]
        assert (await event(stage, "poison", "PartlyBound"))["type"] == "Warning"
        await stage.why("podgroup/poison", "is bound in part", "poison-0")
        assert len(await stage.placed("poison")) == SIZE - 1
    await stage.bound("poison", SIZE, timeout_s=ATTEMPTS_S)
    await condition(stage, "poison", "PartlyBound", "False")


async def worker_again(stage: Stage, **more: Any) -> None:
    """What a controller would do: make the lost member again, under its name."""
    pod = pod_manifest(
        "train-2", requests={"cpu": "1"}, annotations={annotations.GROUP_NAME: "train"}, **more
    )
    await stage.bare_pods(pod)


async def test_capacity_of_a_lost_member_is_held_reported_and_given_to_its_successor(
    stage: Stage,
) -> None:
    await stage.nodes(1)
    await stage.gang("train", 4)
    where = await stage.bound("train", 4)
    await stage.gang("next", 1)
    await stage.waits("next", "NotEnoughResources")
    await stage.delete_pods(["train-2"])
    words = f"capacity for its successor is reserved on {where['train-2']} until"
    held = await condition(stage, "train", "RoomHeld", "True", words)
    assert "train-2" in held["message"]
    assert words in (await event(stage, "train", "RoomHeld"))["message"]
    await stage.why("podgroup/train", words)
    await stage.stays_unbound("next")
    await worker_again(stage)
    assert (await stage.bound("train", 4))["train-2"] == where["train-2"]
    over = await condition(stage, "train", "RoomHeld", "False")
    assert over["reason"] == "Filled"
    assert not await stage.placed("next")


async def test_capacity_is_reserved_for_members_on_a_node_that_an_autoscaler_removes(
    stage: Stage,
) -> None:
    await stage.nodes(3)
    await stage.gang("train", 2, requests={"cpu": "4"})
    where = await stage.bound("train", 2)
    (free,) = {f"node-{index}" for index in range(3)} - set(where.values())
    taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    node = f"/api/v1/nodes/{where['train-1']}"
    await stage.api.patch(node, {"spec": {"taints": [taint]}})
    words = f"train-1 is on {where['train-1']}, which is being removed"
    held = await condition(stage, "train", "RoomHeld", "True", words)
    assert held["reason"] == "NodesLeaving"
    await stage.gang("next", 1, requests={"cpu": "4"})
    await stage.pods_say("next", 1, reason="CapacityReserved")
    await stage.delete_pods(["train-1"])
    await stage.stays_unbound("next")
    await stage.bare_pods(
        pod_manifest(
            "train-1", requests={"cpu": "4"}, annotations={annotations.GROUP_NAME: "train"}
        )
    )
    assert (await stage.bound("train", 2))["train-1"] == free


async def test_capacity_that_no_successor_claims_is_free_again_and_the_gang_is_degraded(
    stage: Stage,
) -> None:
    await stage.nodes(1)
    await stage.group("train", 4, notes={annotations.HOLD_SECONDS: "3"})
    await stage.members("train", 4)
    await stage.bound("train", 4)
    await stage.gang("next", 1)
    await stage.waits("next", "NotEnoughResources")
    await stage.delete_pods(["train-2"])
    await condition(stage, "train", "RoomHeld", "True")
    await stage.bound("next", 1)
    assert (await event(stage, "train", "HoldExpired"))["type"] == "Warning"
    await condition(stage, "train", "Degraded", "True")
    await stage.why("podgroup/train", "is degraded: 3 of the 4 members")

    async def unknown() -> bool:
        return bool((await stage.seen_group("train"))["status"]["phase"] == "Unknown")

    await eventually(unknown, because="the phase of a gang that is degraded")
