"""A planner forgets shapes that no pod has any more, by reading everything again."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from services.gang_planner.service import Renewal
from shared.contracts import codec, subjects
from shared.contracts.cluster import Gone, PodChanges
from shared.model.objects import Shape
from tests.services.gang_planner.core.scene import Scene, make_node, make_pods, make_shape
from tests.services.gang_planner.running import Hall, a_hall, make_gang, now_ms
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer


def test_a_planner_is_due_once_it_has_grown_beyond_its_first_size() -> None:
    renewal = Renewal(100)
    assert not renewal.is_due(1000, active=False)
    assert not renewal.is_due(2100, active=False)
    assert renewal.is_due(2101, active=False)
    assert not renewal.is_due(2101, active=True), "the standby goes first"
    assert renewal.is_due(3151, active=True)


def test_a_large_cluster_is_no_reason_to_begin_again_and_again() -> None:
    assert not Renewal(1).is_due(1_000_000, active=False)


def test_shapes_terms_and_resources_that_users_make_up_count() -> None:
    scene = Scene([make_node("node-0")])
    sizes = [scene.planner.interned]
    for shape in (
        make_shape({"cpu": 123}),
        make_shape({"example.com/made-up": 1}),
        make_shape({"cpu": 123}, claims=("a-claim",)),
    ):
        (pod,) = make_pods("g", 1, shape)
        scene.put(pod)
        scene.remove(pod)
        scene.step()
        sizes.append(scene.planner.interned)
    assert sizes == sorted(set(sizes)), "each adds something that stays"


async def churn(hall: Hall, rounds: int, first: int) -> None:
    """Pods come and go, each with a shape of its own."""
    watcher = hall.watcher
    _, (pod,) = make_gang("churn", 1)
    for number in range(first, first + rounds):
        shape = codec.encode(Shape(requests=(("cpu", 100_000 + number), ("pods", 1))))
        one = replace(pod, uid=f"uid-churn-{number}", name=f"churn-{number}", shape=shape)
        subject, gone = subjects.cluster("pod"), Gone(uid=one.uid, resource_version=2)
        for changed, removed in (((one,), ()), ((), (gone,))):
            record = PodChanges(
                epoch=watcher.epoch, at_ms=now_ms(), changed=changed, removed=removed
            )
            await watcher.append(subject, record)


@pytest.mark.integration
async def test_two_planners_renew_in_turn_and_gangs_are_decided_all_the_while(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        for ordinal in (0, 1):
            await hall.start(ordinal, "--interned-max=40")
            await hall.wait_ready(ordinal + 1)
        active = await hall.wait_active()
        pids = {one.instance: one.pid for one in await hall.statuses()}
        said = "it reads everything again"
        await hall.watcher.submit("first", 2)
        await hall.wait_decided("first")
        await churn(hall, 500, 0)
        await hall.wait_logged(1 - active, said)
        await hall.wait_logged(active, said)
        await hall.wait_ready(2)
        await hall.watcher.submit("second", 2)
        await hall.wait_decided("second")

        async def decided_by_another() -> bool:
            return len(await hall.epochs()) > 1

        await eventually(decided_by_another, because="the active planner has handed over")

        async def same_processes() -> bool:
            # A planner on a busy machine may answer late.
            return {one.instance: one.pid for one in await hall.statuses()} == pids

        await eventually(same_processes, because="both planners live in the same processes")
        assert len(await hall.decisions()) == 2, "nothing is decided twice"
