"""What a real kube-apiserver holds after verdicts."""

import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec
import pytest

from shared.contracts import annotations
from shared.contracts.verdicts import Condition, PodRef, Verdict, Why
from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import bind_pod, create_nodes, create_pods, pod_manifest
from tests.services.controller.core.samples import SENTENCE, START_MS, make_running, make_waiting
from tests.services.controller.harness import Desk, a_desk, controllers
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration

logger = logging.getLogger(__name__)

GROUPS = {
    "volcano": "scheduling.volcano.sh/v1beta1",
    "incubator": "scheduling.incubator.k8s.io/v1alpha1",
    "sigs": "scheduling.sigs.dev/v1alpha2",
}


@pytest.fixture
async def desk(nats_server: NatsServer) -> AsyncIterator[Desk]:
    async with a_desk(nats_server.url) as sitting:
        yield sitting


def path_of(namespace: str, dialect: str = "volcano", name: str = "job") -> str:
    return f"/apis/{GROUPS[dialect]}/namespaces/{namespace}/podgroups/{name}"


async def make_group(api: RawClient, namespace: str, dialect: str = "volcano") -> Object:
    manifest = {
        "apiVersion": GROUPS[dialect],
        "kind": "PodGroup",
        "metadata": {"name": "job"},
        "spec": {"minMember": 3},
    }
    return await api.create(path_of(namespace, dialect, "").rstrip("/"), manifest)


def placed_in(verdict: Verdict, group: Object, **given: Any) -> Verdict:
    """The verdict for this very group, new to the controller."""
    metadata, now_ms = group["metadata"], time.time_ns() // 1_000_000
    fields = {
        "gang_id": metadata["uid"],
        "uid": metadata["uid"],
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "at_ms": now_ms,
        "first_seen_ms": now_ms + 60_000,
    }
    return msgspec.structs.replace(verdict, **{**fields, **given})


async def events_of(api: RawClient, namespace: str, uid: str) -> list[Object]:
    found = await api.get(f"/api/v1/namespaces/{namespace}/events")
    return [event for event in found["items"] if event["involvedObject"]["uid"] == uid]


@pytest.mark.parametrize("dialect", GROUPS)
async def test_a_running_gang_is_shown_on_its_group_in_one_go(
    dialect: str, desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace, dialect)
    verdict = placed_in(make_running(placed=(), dialect=dialect), group)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written()
    found = await api.get(path_of(namespace, dialect))
    assert found["status"]["phase"] == "Running"
    assert found["status"]["running"] == 3
    notes = found["metadata"]["annotations"]
    shown = msgspec.json.decode(notes[annotations.VERDICT], type=Verdict)
    assert (shown.phase, shown.min_member) == ("Running", 3)
    assert notes[annotations.TRACE_ID] == verdict.trace_id
    (event,) = await events_of(api, namespace, group["metadata"]["uid"])
    assert (event["type"], event["reason"], event["message"], event["count"]) == (
        "Normal",
        "Scheduled",
        "pod group is ready",
        1,
    )


@pytest.mark.parametrize("dialect", GROUPS)
async def test_every_condition_is_stored_on_a_group_of_every_api_and_sent_as_one_event(
    dialect: str, desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace, dialect)
    uid = group["metadata"]["uid"]
    kinds = ("Releasing", "PartlyBound", "RoomHeld", "Degraded")
    holding = tuple(
        Condition(type=kind, status="True", reason="Why", message=f"so {kind}", since_ms=1_000)
        for kind in kinds
    )
    over = tuple(msgspec.structs.replace(one, status="False", reason="Over") for one in holding)
    verdict = placed_in(make_running(placed=(), dialect=dialect, conditions=holding), group)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        for running in (3, 2):
            await desk.say(msgspec.structs.replace(verdict, running=running))
            await desk.all_written()
        found = await api.get(path_of(namespace, dialect))
        shown = {one["type"]: one for one in found["status"]["conditions"]}
        assert {kind: shown[kind]["message"] for kind in kinds} == {k: f"so {k}" for k in kinds}
        await desk.say(msgspec.structs.replace(verdict, conditions=over))
        await desk.all_written()
    found = await api.get(path_of(namespace, dialect))
    assert [one["status"] for one in found["status"]["conditions"]] == ["False"] * 4
    reported = [(one["reason"], one["count"]) for one in await events_of(api, namespace, uid)]
    wanted = ("Scheduled", "GangReleased", "PartlyBound", "RoomHeld", "Degraded")
    assert sorted(reported) == sorted((reason, 1) for reason in wanted)


async def test_a_waiting_gang_has_conditions_on_its_group_and_on_every_pod(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace)
    pods = await create_pods(api, namespace, [pod_manifest(f"w-{n}") for n in range(3)])
    refs = tuple(PodRef(uid=pod["metadata"]["uid"], name=pod["metadata"]["name"]) for pod in pods)
    verdict = placed_in(make_waiting(waiting=refs, unschedulable=2), group)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written()
    words = ("Unschedulable", "Unschedulable", "NotEnoughResources")
    for ref, word in zip(refs, words, strict=True):
        pod = await api.get(f"/api/v1/namespaces/{namespace}/pods/{ref.name}")
        (condition,) = pod["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
        assert (condition["reason"], condition["message"]) == (word, SENTENCE)
    (event,) = await events_of(api, namespace, group["metadata"]["uid"])
    assert event["message"] == f"3/3 tasks in gang unschedulable: {SENTENCE}"


async def test_a_pod_bound_while_it_is_marked_does_not_read_unscheduled(
    desk: Desk,
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
    empty_cluster: None,
) -> None:
    group = await make_group(api, namespace)
    await create_nodes(api, 1)
    (pod,) = await create_pods(api, namespace, [pod_manifest("w-0")])
    await bind_pod(api, pod, "node-0")
    ref = PodRef(uid=pod["metadata"]["uid"], name="w-0")
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(placed_in(make_waiting(waiting=(ref,)), group))
        await desk.all_written()
    found = await api.get(f"/api/v1/namespaces/{namespace}/pods/w-0")
    (condition,) = found["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


async def test_another_reason_counts_the_event_up_instead_of_adding_one(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace)
    uid = group["metadata"]["uid"]
    other = Why(reason="QueueNotOpen", sentence="queue q is Closed")
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(placed_in(make_waiting(waiting=()), group))
        await eventually(lambda: events_of(api, namespace, uid))
        await desk.say(placed_in(make_waiting(waiting=(), why=other), group))

        async def counted() -> bool:
            (event,) = await events_of(api, namespace, uid)
            closed = "3/3 tasks in gang unschedulable: queue q is Closed"
            assert (event["count"], event["message"]) == (2, closed)
            return True

        await eventually(counted)


async def test_nothing_is_written_on_another_group_of_the_same_name(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace)
    recreated = {**group, "metadata": {**group["metadata"], "uid": "of-another-life"}}
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(placed_in(make_running(placed=()), recreated))
        await desk.all_written()
    found = await api.get(path_of(namespace))
    assert "annotations" not in found["metadata"]
    assert "status" not in found


async def test_a_group_that_is_gone_costs_no_more_than_the_attempt(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace)
    await api.delete(path_of(namespace))
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(placed_in(make_running(placed=()), group))
        await desk.all_written()


async def test_an_equal_verdict_after_a_restart_writes_nothing(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace)
    verdict = placed_in(make_running(placed=()), group, first_seen_ms=1)
    versions: list[str] = []
    for epoch in (2, 3):
        async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
            await desk.say(msgspec.structs.replace(verdict, epoch=epoch))
            await desk.all_written()
        versions.append((await api.get(path_of(namespace)))["metadata"]["resourceVersion"])
    assert versions[0] == versions[1]
    (event,) = await events_of(api, namespace, group["metadata"]["uid"])
    assert event["count"] == 1


async def test_pod_events_keep_their_rate_and_the_others_are_counted(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace)
    pods = await create_pods(api, namespace, [pod_manifest(f"w-{n}") for n in range(12)])
    refs = tuple(
        PodRef(uid=pod["metadata"]["uid"], name=pod["metadata"]["name"], node="n") for pod in pods
    )
    async with controllers(
        desk.url, control_plane.admin_kubeconfig, "status", pod_events_per_s=1
    ) as stand:
        await desk.say(placed_in(make_running(placed=refs), group))
        await desk.all_written()
        dropped = stand.metrics.figures()["pod_events_dropped_total"]
    reported = [one for ref in refs for one in await events_of(api, namespace, ref.uid)]
    # The burst is one Event; each second that a slow machine takes allows one more.
    assert 1 <= len(reported) < len(pods)
    assert len(reported) + dropped == len(pods)
    assert reported[0]["message"] == f"Successfully assigned {namespace}/w-0 to n"


async def test_a_waiting_pod_has_the_event_that_kubernetes_users_expect(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace)
    pods = await create_pods(api, namespace, [pod_manifest(f"w-{n}") for n in range(3)])
    refs = tuple(PodRef(uid=pod["metadata"]["uid"], name=pod["metadata"]["name"]) for pod in pods)
    waiting = placed_in(make_waiting(waiting=refs), group)
    url, kubeconfig = desk.url, control_plane.admin_kubeconfig
    async with controllers(url, kubeconfig, "status", waiting_pod_events_per_s=0):
        await desk.say(waiting)
        await desk.all_written()
    assert await failed(api, namespace, refs) == [], "they are switched off"
    async with controllers(url, kubeconfig, "status"):
        await desk.say(msgspec.structs.replace(waiting, epoch=3))

        async def reported() -> bool:
            return len(await failed(api, namespace, refs)) == 3

        await eventually(reported)
        other = Why(reason="QueueNotOpen", sentence="queue q is Closed", since_ms=START_MS)
        await desk.say(msgspec.structs.replace(waiting, epoch=4, why=other))

        async def reworded() -> bool:
            events = await failed(api, namespace, refs)
            return {one["message"] for one in events} == {"queue q is Closed"}

        await eventually(reworded)
    events = await failed(api, namespace, refs)
    assert [(one["type"], one["count"]) for one in events] == [("Warning", 2)] * 3
    assert {(one["reportingComponent"], one["source"]["component"]) for one in events} == {
        ("tutti", "tutti")
    }


async def failed(api: RawClient, namespace: str, pods: Iterable[PodRef]) -> list[Object]:
    found = [one for pod in pods for one in await events_of(api, namespace, pod.uid)]
    return [one for one in found if one["reason"] == "FailedScheduling"]


async def test_the_newest_verdict_is_what_stands_when_many_come_at_once(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace)
    url, kubeconfig = desk.url, control_plane.admin_kubeconfig
    async with (
        controllers(url, kubeconfig, "status") as one,
        controllers(url, kubeconfig, "status") as other,
    ):
        for running in range(40):
            await desk.say(placed_in(make_running(placed=(), running=running), group))

        async def newest_stands_and_nothing_is_under_way() -> bool:
            # A replaced verdict is not waited for by NATS: its write may still be in flight.
            waiting = any(each.metrics.figures()["gangs_waiting"] for each in (one, other))
            status = (await api.get(path_of(namespace))).get("status", {})
            return not waiting and bool(status.get("running") == 39)

        await desk.all_written()
        await eventually(newest_stands_and_nothing_is_under_way)


async def test_a_nomination_is_stored_while_pods_are_evicted_and_removed_when_that_is_given_up(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace)
    (pod,) = await create_pods(api, namespace, [pod_manifest("w-0")])
    ref = PodRef(uid=pod["metadata"]["uid"], name="w-0")
    nominated = msgspec.structs.replace(ref, node="n-0")
    why = Why(reason="Preempting", sentence="1 pod is being evicted for it", since_ms=START_MS)
    seen: list[tuple[str, str | None]] = []
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        for verdict in (
            make_waiting(waiting=(ref,), unschedulable=1),
            make_waiting(waiting=(nominated,), why=why),
            make_waiting(waiting=(ref,), unschedulable=1),
        ):
            await desk.say(placed_in(verdict, group))
            await desk.all_written()
            status = (await api.get(f"/api/v1/namespaces/{namespace}/pods/w-0"))["status"]
            (condition,) = status["conditions"]
            seen.append((condition["reason"], status.get("nominatedNodeName")))
    assert seen == [("Unschedulable", None), ("Preempting", "n-0"), ("Unschedulable", None)]


@pytest.mark.certify
@pytest.mark.timeout(300)
async def test_a_thousand_members_are_marked_for_autoscalers_without_a_pause(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace)
    pods = await create_pods(api, namespace, [pod_manifest(f"w-{n}") for n in range(1_000)])
    refs = tuple(PodRef(uid=pod["metadata"]["uid"], name=pod["metadata"]["name"]) for pod in pods)
    path = f"/api/v1/namespaces/{namespace}/pods"

    async def reasons() -> Counter[str]:
        listed = (await api.get(path))["items"]
        return Counter(
            one["reason"] for pod in listed for one in pod["status"].get("conditions", ())
        )

    helped = placed_in(make_waiting(waiting=refs, unschedulable=len(refs)), group)
    why = Why(reason="NotEnoughQuota", sentence="queue q is full", since_ms=START_MS)
    over = placed_in(make_waiting(waiting=refs, why=why), group)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        for verdict, word in ((helped, "Unschedulable"), (over, "NotEnoughQuota")):
            began = time.monotonic()
            await desk.say(verdict)
            await desk.all_written(timeout_s=100)
            logger.info("1,000 pods were marked %s in %.2f s", word, time.monotonic() - began)
            assert await reasons() == {word: len(refs)}
