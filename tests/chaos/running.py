"""One run: cluster, suite, users, monkey and judge; then quiet, then the report."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from tests.chaos.audit import Judge
from tests.chaos.forms import NAMESPACE
from tests.chaos.gangs import PODS, POISON, Users
from tests.chaos.monkey import Monkey
from tests.chaos.report import Report, bound_though_refused, is_whole, lost, placed, recoveries
from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.nodes import create_namespace, create_nodes, pod_manifest
from tests.integration.suite import RunningSuite
from tests.support.waiting import eventually

#: Once nothing goes wrong any more, all that fits must be whole within this.
SETTLE_S: Final = 90.0
#: With a hundred gangs on a busy machine the judge is that far behind.
SEEN_S: Final = 60.0
START_DELAY_S: Final = 0.2
#: Pods per node, and of all there is the share that gangs alive at once take: with those that come
#: in a rush and the other scheduler's there is little left, and both want the same of it.
PODS_PER_NODE: Final = 4
MEAN_SIZE: Final = 4
_SHARE: Final = 0.6
_REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1"


async def run(
    control_plane: ControlPlane,
    suite: RunningSuite,
    *,
    seed: int,
    minutes: float,
    nodes: int,
    only: Sequence[str] = (),
    say: Callable[[str], None],
) -> Report:
    """Play `minutes` of chaos, let it settle, and judge."""
    rng = random.Random(seed)
    async with prepared(control_plane, nodes) as (client, hands, eyes):
        await refuse_poisoned(client)
        room = nodes * PODS_PER_NODE
        alive_max = max(1, int(room * _SHARE / MEAN_SIZE))
        users = Users(client, random.Random(rng.random()), alive_max, room)
        judge = Judge(eyes)
        kubelet = FakeKubelet(hands, start_delay_s=START_DELAY_S)
        monkey = Monkey(
            suite,
            control_plane,
            client,
            users,
            random.Random(rng.random()),
            only=only,
            whole=lambda name: is_whole(judge, name),
            say=say,
        )
        async with playing(judge, kubelet, users) as background:
            await judge.watching()
            await storm(monkey, background, minutes)
            say("quiet: what fits must become whole now")
            users.coming = False
            await users.remove_natives()
            await _settle(users, judge, background)
            await judge.catch_up(SEEN_S)
            for name in lost(users, judge):
                await _describe(client, name, say)
            return _report(users, judge, monkey, suite, (seed, minutes, nodes))


@asynccontextmanager
async def prepared(
    control_plane: ControlPlane, nodes: int
) -> AsyncIterator[tuple[RawClient, RawClient, RawClient]]:
    """A cluster with the CRDs, the namespace of a run and so many nodes; clients for its users, its
    kubelets and its judge. Each has connections of its own: the judge must not wait behind the
    users.
    """
    kubeconfig = control_plane.admin_kubeconfig
    await asyncio.to_thread(control_plane.install_crds, CRDS_DIR)
    async with (
        RawClient(kubeconfig) as client,
        RawClient(kubeconfig) as hands,
        RawClient(kubeconfig) as eyes,
    ):
        await create_namespace(client, NAMESPACE)
        await create_nodes(client, nodes)
        yield client, hands, eyes


@asynccontextmanager
async def playing(
    judge: Judge, kubelet: FakeKubelet, users: Users
) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run judge, kubelets and users for the length of the block; their tasks."""
    background = [
        asyncio.create_task(judge.run(), name="judge"),
        asyncio.create_task(kubelet.run(), name="kubelets"),
        asyncio.create_task(users.run(), name="users"),
    ]
    try:
        yield background
    finally:
        for task in background:
            task.cancel()
        await asyncio.wait(background)


async def storm(monkey: Monkey, background: list[asyncio.Task[None]], minutes: float) -> None:
    """Inject faults for so many minutes; the background tasks must last as long."""
    faults = asyncio.create_task(monkey.run(), name="monkey")
    done, _ = await asyncio.wait(
        [faults, *background], timeout=60 * minutes, return_when=asyncio.FIRST_COMPLETED
    )
    faults.cancel()
    await asyncio.wait([faults])
    for task in done:
        task.result()


async def _settle(users: Users, judge: Judge, background: list[asyncio.Task[None]]) -> None:
    """Wait until every gang is whole or has ended, or for long enough."""
    deadline_s = asyncio.get_running_loop().time() + SETTLE_S
    while asyncio.get_running_loop().time() < deadline_s:
        for task in background:
            if task.done():
                task.result()
        refused = [one for one in users.alive() if one.poisoned and placed(judge, one.group)]
        if not lost(users, judge) and not refused:
            return
        await asyncio.sleep(0.5)


async def _describe(client: RawClient, gang: str, say: Callable[[str], None]) -> None:
    """Say what the API server has of the members of a gang that should be whole."""
    for pod in (await client.get(PODS))["items"]:
        name, status = pod["metadata"]["name"], pod["status"]
        if not name.startswith(f"{gang}-"):
            continue
        words = [
            f"{one['type']}={one['status']} {one.get('reason', '')} {one.get('message', '')}"
            for one in status.get("conditions") or ()
        ]
        leaving = ", leaving" if pod["metadata"].get("deletionTimestamp") else ""
        place = pod["spec"].get("nodeName") or "no node"
        say(f"lost: {name}: {status.get('phase')}{leaving} on {place}; {'; '.join(words)}")


async def refuse_poisoned(client: RawClient) -> None:
    """Have the API server refuse the bindings of chosen pods, for ever."""
    name = "no-poison"
    policy: Object = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods/binding"],
                    }
                ]
            },
            "validations": [
                {
                    "expression": f"!object.metadata.name.contains('{POISON}')",
                    "message": "this member may not be bound",
                }
            ],
        },
    }
    binding: Object = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    await client.create(f"{_REGISTRATION}/validatingadmissionpolicies", policy)
    await client.create(f"{_REGISTRATION}/validatingadmissionpolicybindings", binding)
    probe = f"{POISON}-probe"
    pod = await client.create(PODS, pod_manifest(probe, scheduler_name="nobody"))

    async def in_force() -> bool:
        try:
            await client.request(
                "POST",
                f"{PODS}/{probe}/binding",
                {"metadata": {"name": probe}, "target": {"kind": "Node", "name": "node-0"}},
                params={"dryRun": "All"},
            )
        except ApiError as error:
            return error.status in {403, 422}
        return False

    await eventually(in_force, timeout_s=30, because="the API server follows the policy")
    await client.delete(f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})


def _report(
    users: Users,
    judge: Judge,
    monkey: Monkey,
    suite: RunningSuite,
    drawn: tuple[int, float, int],
) -> Report:
    seed, minutes, nodes = drawn
    partial_s, beyond_s = judge.partial_s(bare=False)
    bare_s, _ = judge.partial_s(bare=True)
    return Report(
        seed=seed,
        minutes=minutes,
        nodes=nodes,
        gangs=len(users.gangs),
        whole=sum(one.quorum_s is not None for one in judge.gangs.values()),
        faults=len(monkey.faults),
        troubles=users.troubles,
        partial_s=round(partial_s, 3),
        partial_beyond_s=round(beyond_s, 3),
        partial_longest_s=round(judge.longest_partial_gang_s(), 3),
        bare_partial_s=round(bare_s, 3),
        degraded_s=round(judge.degraded_s(), 3),
        overcommitted_by_us=tuple(judge.overcommitted_by_us),
        overcommitted_together=len(judge.overcommitted),
        refused_by_kubelets=len(judge.refused),
        double_bindings=tuple(judge.double_bindings()),
        lost=lost(users, judge),
        bound_though_refused=bound_though_refused(users, judge),
        recoveries=recoveries(monkey.faults, judge),
        ends=len(suite.said.splitlines()),
    )


def suite_flags() -> tuple[str, ...]:
    """Two of everything that may have two."""
    return ("--no-webhook", "--replicas=watcher=2")
