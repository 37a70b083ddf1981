"""What goes wrong around the suite while gangs come in: processes, servers, nodes and groups die.

The auditor judges each test: nothing on two nodes, no node with too much on it, no gang bound in
part at the end.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import psutil
import pytest

from shared.contracts import annotations
from tests.controlplane.components import APISERVER
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import Stage
from tests.support.waiting import eventually
from tutti.lifeline import dying_with_parent

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

GANGS: Final = 20
MEMBERS: Final = 8
#: All gangs fit with some room to spare.
NODES: Final = 5
RECOVERED_S: Final = 60.0
#: A gang may be bound in part for as long as what was killed takes to come back, and no longer.
PARTIAL_S_MAX: Final = 15.0

logger = logging.getLogger(__name__)


async def come_in(stage: Stage, gangs: int = GANGS) -> None:
    """Create gangs one after the other, at full speed."""
    for index in range(gangs):
        await stage.gang(f"gang-{index}", MEMBERS, requests={"cpu": "100m"})


async def with_accident(stage: Stage, accident: Callable[[], Awaitable[object]]) -> None:
    """Have the accident when a third of the gangs is there, and wait until all are bound."""
    await stage.nodes(NODES)
    async with asyncio.TaskGroup() as group:
        coming = group.create_task(come_in(stage), name="gangs")

        async def a_third() -> bool:
            return len(await stage.pods()) > GANGS * MEMBERS // 3

        await eventually(a_third, timeout_s=RECOVERED_S, because="gangs are coming in")
        await accident()
        await coming
    await all_bound(stage)


async def all_bound(stage: Stage, gangs: int = GANGS) -> None:
    async def whole() -> bool:
        placed = await stage.placed()
        assert len(placed) == gangs * MEMBERS, f"{len(placed)} are bound"
        return True

    await eventually(whole, timeout_s=RECOVERED_S, because="all gangs are whole")


def partly(stage: Stage) -> None:
    """Log how long a gang was bound in part, at most (`--log-level=info -rP` shows it)."""
    longest_s = stage.audit.longest_partial_s()
    logger.info("the longest time that a gang was bound in part: %.3f s", longest_s)
    assert longest_s < PARTIAL_S_MAX


@pytest.mark.parametrize(
    "instance",
    [
        "watcher-0",
        # The next test kills the active one twice: one of these is a standby.
        pytest.param("gang-planner-0", marks=pytest.mark.certify),
        pytest.param("gang-planner-1", marks=pytest.mark.certify),
        "binder-0",
        "controller-0",
    ],
)
async def test_a_service_killed_while_gangs_come_in_costs_no_gang(
    stage: Stage, instance: str
) -> None:
    before = await stage.suite.pids()
    await with_accident(stage, lambda: stage.suite.kill(instance))
    after = await stage.suite.pids()
    assert {name for name in before if before[name] != after[name]} == {instance}
    partly(stage)


async def test_the_planner_that_decides_is_killed_twice_in_a_row(stage: Stage) -> None:
    async def kill_both() -> None:
        for _ in range(2):
            await stage.suite.kill(await stage.suite.active("gang-planner"))

    await with_accident(stage, kill_both)
    partly(stage)


async def test_nats_killed_while_gangs_come_in_costs_no_gang_and_no_service(stage: Stage) -> None:
    before = await stage.suite.pids()

    async def kill() -> None:
        stage.suite.kill_nats()

    await with_accident(stage, kill)
    assert await stage.suite.pids() == before
    partly(stage)


async def test_the_api_server_killed_while_gangs_come_in_costs_no_gang_and_no_service(
    stage: Stage,
) -> None:
    before = await stage.suite.pids()
    await stage.nodes(NODES)
    await come_in(stage, GANGS // 2)
    await asyncio.to_thread(stage.control_plane.kill, APISERVER)
    await asyncio.to_thread(stage.control_plane.restart, APISERVER)
    for index in range(GANGS // 2, GANGS):
        await stage.gang(f"gang-{index}", MEMBERS, requests={"cpu": "100m"})
    await all_bound(stage)
    assert await stage.suite.pids() == before
    partly(stage)


async def test_a_frozen_planner_that_wakes_up_beside_its_successor_writes_nothing(
    stage: Stage,
) -> None:
    """It was only asleep: its lease is gone, and what it wants to append comes too late."""
    active = await stage.suite.active("gang-planner")
    sleeper = psutil.Process((await stage.suite.pids())[active])
    await stage.nodes(NODES)
    sleeper.suspend()
    try:
        await come_in(stage, 5)
        await all_bound(stage, 5)
    finally:
        sleeper.resume()
    for index in range(5, 10):
        await stage.gang(f"gang-{index}", MEMBERS, requests={"cpu": "100m"})
    await all_bound(stage, 10)
    pids = await stage.suite.pids()
    assert await stage.suite.active("gang-planner") != active or pids[active] != sleeper.pid


@asynccontextmanager
async def one_more(stage: Stage, service: str, *flags: str) -> AsyncIterator[None]:
    """A second process of a service, started by mistake as if it were the first."""
    users: tuple[str, ...] = ()
    # Without credentials the tests may do everything: see `tests.rights.guarded_up`.
    if stage.suite.ready.nats_credentials:
        folder = Path(stage.suite.ready.nats_credentials).parent
        seed = folder / f"{service.replace('_', '-')}.nk"
        users = (f"--nats-user={seed.stem}", f"--nats-credentials={seed}")
    command = [sys.executable, "-m", f"services.{service}", *users, *flags]
    log = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command,
        f"--nats-url={stage.suite.ready.nats_url}",
        stdout=log,
        stderr=log,
        preexec_fn=dying_with_parent(),
    )
    try:
        yield
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def test_two_watchers_and_four_planners_by_mistake_bind_every_gang_once(
    stage: Stage,
) -> None:
    """Two of the planners even take the ordinals, and so the consumers, of the other two."""
    kubeconfig = f"--kubeconfig={stage.suite.kubeconfig}"
    async with (
        one_more(stage, "watcher", kubeconfig, "--instance=watcher-9", "--podgroup-controller"),
        one_more(stage, "gang_planner", "--instance=gang-planner-8", "--ordinal=0"),
        one_more(stage, "gang_planner", "--instance=gang-planner-9", "--ordinal=1"),
    ):
        wanted = {"watcher-9", "gang-planner-8", "gang-planner-9"}

        async def there() -> bool:
            return (await stage.suite.answers()).keys() >= wanted

        await eventually(there, timeout_s=20, because="the mistake is made")
        await stage.nodes(NODES)
        await come_in(stage)
        await all_bound(stage)
    await stage.gang("after", MEMBERS, requests={"cpu": "100m"})
    await stage.bound("after", MEMBERS)


async def test_a_group_deleted_while_its_gang_is_bound_and_made_again_is_one_whole_gang(
    stage: Stage,
) -> None:
    await stage.nodes(NODES)
    for index in range(10):
        name = f"gang-{index}"
        await stage.gang(name, MEMBERS, requests={"cpu": "100m"})
        await stage.delete(stage.group_path(name))
        await stage.group(name, MEMBERS)
    await all_bound(stage, 10)


async def test_a_group_deleted_for_good_keeps_its_unbound_pods_waiting_and_says_so(
    stage: Stage,
) -> None:
    await stage.gang("train", 2)
    await stage.waits("train", "NotEnoughResources", "there are no nodes")
    await stage.delete(stage.group_path("train"))
    for condition in await stage.pods_say("train", 2):
        assert condition["reason"] in {"Unschedulable", "GroupMissing"}

    await stage.pods_say("train", 2, reason="GroupMissing", words="does not exist")
    await stage.nodes(1)
    await stage.stays_unbound("train", for_s=1)
    await stage.group("train", 2)
    await stage.bound("train", 2)


async def test_pods_deleted_while_their_gang_waits_leave_a_gang_that_waits_for_others(
    stage: Stage,
) -> None:
    await stage.nodes(1, cpu_milli=2000)
    await stage.gang("train", 3)
    await stage.waits("train", "NotEnoughResources")
    await stage.delete_pods(["train-0", "train-1"])
    await stage.waits("train", "NotEnoughPods", "1 of 3 members exist")
    await stage.members("train", 2, prefix="again", requests={"cpu": "500m"})
    await stage.bound("train", 3)


async def test_pods_deleted_while_they_are_bound_do_not_stop_the_suite(stage: Stage) -> None:
    await stage.nodes(NODES)
    before = await stage.suite.pids()
    for index in range(10):
        made = await stage.gang(f"gone-{index}", MEMBERS, requests={"cpu": "100m"})
        await stage.delete_pods([pod["metadata"]["name"] for pod in made])
    await stage.gang("good", MEMBERS)
    await stage.bound("good", MEMBERS)
    assert await stage.suite.pids() == before


async def test_a_node_deleted_or_cordoned_as_gangs_are_bound_leaves_no_gang_in_part(
    stage: Stage,
) -> None:
    """Pods decided for a node that is gone a moment later are bound to it nevertheless: the API
    server does not check. The fresh gangs must not be.
    """
    await stage.nodes(NODES)
    await stage.nodes(3, prefix="going-")
    for index in range(6):
        await stage.gang(f"gang-{index}", MEMBERS, requests={"cpu": "100m"})
        if index < 3:
            await stage.delete(f"/api/v1/nodes/going-{index}")
        elif index < 5:
            await stage.api.patch(f"/api/v1/nodes/node-{index}", {"spec": {"unschedulable": True}})
    await all_bound(stage, 6)
    await asyncio.sleep(0.2)
    await stage.gang("late", MEMBERS, requests={"cpu": "100m"})
    placed = await stage.bound("late", MEMBERS)
    assert set(placed.values()) <= {"node-0", "node-1", "node-2"}


async def test_gangs_and_kube_schedulers_pods_share_nodes(stage: Stage) -> None:
    """Each sees the other's pods only once they are bound; with room for all, all are bound."""
    await stage.nodes(NODES)
    names = [f"native-{index}" for index in range(40)]

    async def natives() -> None:
        for name in names:
            request = {"cpu": "50m"}
            pod = pod_manifest(name, requests=request, scheduler_name="default-scheduler")
            await stage.bare_pods(pod)

    async with asyncio.TaskGroup() as group:
        group.create_task(natives(), name="natives")
        group.create_task(come_in(stage, 10), name="gangs")

    async def all_there() -> bool:
        placed = await stage.placed()
        return len(placed) == 10 * MEMBERS + len(names)

    await eventually(all_there, timeout_s=30, because="both have bound theirs")


async def test_everything_at_once_dies_and_comes_back(stage: Stage) -> None:
    pids = await stage.suite.pids()

    async def kill_all() -> None:
        for pid in pids.values():
            os.kill(pid, signal.SIGKILL)
        stage.suite.kill_nats()

    await with_accident(stage, kill_all)
    assert not set((await stage.suite.pids()).values()) & set(pids.values())
    partly(stage)


async def test_a_lost_zone_costs_the_gangs_in_it_that_part_and_no_other_gang(
    stage: Stage,
) -> None:
    """Nodes and pods of one zone of three vanish together. Gangs elsewhere are not touched; gangs
    that lost a member get it back in the remaining zones; those that do not fit there wait whole
    until the zone is back.
    """
    zone = "topology.kubernetes.io/zone"
    for name in "abc":
        await stage.nodes(2, prefix=f"{name}-", labels={zone: name})
    spread = {
        "maxSkew": 1,
        "topologyKey": zone,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"gang": "across"}},
    }
    labels, spec = {"gang": "across"}, {"topologySpreadConstraints": [spread]}
    await stage.gang("across", 3, labels=labels, spec=spec)
    placed = await stage.bound("across", 3)
    assert {node[0] for node in placed.values()} == set("abc")
    await stage.gang("elsewhere", 6, spec={"nodeSelector": {zone: "b"}})
    await stage.bound("elsewhere", 6)
    untouched = {pod["metadata"]["uid"] for pod in await stage.pods("elsewhere")}
    (lost,) = (name for name, node in placed.items() if node.startswith("a-"))
    for node in ("a-0", "a-1"):
        await stage.delete(f"/api/v1/nodes/{node}")
    await stage.delete_pods([lost])
    await stage.gang("late", 8)
    await stage.waits("late", "NotEnoughResources")
    again = pod_manifest(
        lost,
        requests={"cpu": "1"},
        labels=labels,
        annotations={annotations.GROUP_NAME: "across"},
        spec=spec,
    )
    await stage.bare_pods(again)
    placed = await stage.bound("across", 3)
    assert {node[0] for node in placed.values()} == set("bc")
    assert {pod["metadata"]["uid"] for pod in await stage.pods("elsewhere")} == untouched
    await stage.stays_unbound("late")
    await stage.nodes(2, prefix="a-", labels={zone: "a"})
    await stage.bound("late", 8)
