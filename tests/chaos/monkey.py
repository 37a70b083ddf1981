"""What goes wrong, one thing after the other, drawn from a seed.

Every kind of fault is a function here. Processes are chosen by pid: those that `tutti up` says it
runs, its nats-server, and the components of the control plane.
"""

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import psutil

from shared.bus.errors import BusError
from tests.chaos.gangs import PODS, TROUBLE, Gang, Users
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import APISERVER, SCHEDULER
from tests.controlplane.nodes import NodeShape, node_manifest
from tests.integration.suite import RunningSuite
from tests.support.waiting import eventually

_ON_THE_ACTIVE: Final = 0.8
SERVICES: Final = ("watcher", "gang-planner", "binder", "controller")
#: Longer than a lease lasts, longer than a binder's ack wait.
_FROZEN_S: Final = (0.5, 6.0)
#: How long a process hangs unless `tutti up` finds and replaces it: longer than any promise allows.
_HUNG_S: Final = 40.0
_GAP_S: Final = (1.0, 4.0)
_NATIVES: Final = 30
#: For the other scheduler's bindings to be made, and for kubelets to refuse ours.
_BOUND_BY_OTHERS_S: Final = 0.7
#: So often nothing else is done until the probe is whole, or for so long.
ALONE: Final = 0.7
_PROBE_S: Final = 20.0
#: Gangs that come in just before a fault, and how long that takes.
_RUSH: Final = 4
_RUSH_LASTS_S: Final = 1.0


@dataclass(frozen=True)
class Fault:
    """One that was committed, and the gang that came in at that moment."""

    kind: str
    at_s: float
    probe: Gang
    #: The one before it was over, and nothing else was done until the probe was whole: its time is
    #: this fault's alone.
    alone: bool = False
    #: How long the thing itself took: the freeze, or the server's new start.
    lasted_s: float = 0.0


class Monkey:
    """`run` it while gangs come and go."""

    def __init__(
        self,
        suite: RunningSuite,
        control_plane: ControlPlane,
        client: RawClient,
        users: Users,
        rng: random.Random,
        *,
        only: Sequence[str],
        whole: Callable[[str], bool],
        say: Callable[[str], None],
        alone: float = ALONE,
    ) -> None:
        """`only`: these kinds, or all; `whole(gang)`: whether the judge saw it reach its quorum;
        `alone`: the share of faults that are alone.
        """
        self._suite = suite
        self._control_plane = control_plane
        self._client = client
        self._users = users
        self._rng = rng
        self._whole = whole
        self._alone = alone
        self._say = say
        self._nodes = 0
        self.faults: list[Fault] = []
        self._kinds: dict[str, Callable[[], Awaitable[object]]] = {
            **{f"{name} killed": self._on_service(name, self._kill) for name in SERVICES},
            **{f"{name} frozen": self._on_service(name, self._freeze) for name in SERVICES},
            **{f"{name} stopped": self._on_service(name, self._stop) for name in SERVICES[:3]},
            **{f"{name} hung": self._on_service(name, self._hang) for name in SERVICES},
            **{f"all {name}s hung": self._all_hung(name) for name in SERVICES},
            "everything killed": self._kill_all,
            "nats-server killed": lambda: self._kill(self._suite.nats_pid()),
            "nats-server frozen": lambda: self._freeze(self._suite.nats_pid()),
            "nats-server hung": lambda: self._hang(self._suite.nats_pid()),
            "kube-apiserver killed": self._restart_apiserver,
            "kube-apiserver frozen": lambda: self._freeze(self._control_plane.pid(APISERVER)),
            "kube-scheduler killed": self._restart_scheduler,
            "node deleted": self._delete_node,
            "member deleted": self._delete_member,
            "natives arrive": self._natives,
            "natives take decided room": self._natives_first,
        }

        unknown = set(only) - self._kinds.keys()
        if unknown:
            raise ValueError(f"no such fault: {unknown}; there are: {', '.join(self._kinds)}")
        if only:
            self._kinds = {kind: self._kinds[kind] for kind in only}

    async def run(self) -> None:
        """Commit one fault after the other until cancelled; every kind once, then at random."""
        kinds = list(self._kinds)
        self._rng.shuffle(kinds)
        while True:
            kind = kinds.pop() if kinds else self._rng.choice(list(self._kinds))
            await asyncio.sleep(self._rng.uniform(*_GAP_S))
            await self._commit(kind)

    async def _commit(self, kind: str) -> None:
        calm = not self.faults or self._whole(self.faults[-1].probe.name)
        self._users.rush(_RUSH)
        await asyncio.sleep(self._rng.uniform(0.0, _RUSH_LASTS_S))
        at_s = asyncio.get_running_loop().time()
        try:
            # The probe comes in while it happens: it is made by the users' next pass.
            fault = Fault(kind, at_s, self._users.probe())
            await self._kinds[kind]()
            lasted_s = asyncio.get_running_loop().time() - at_s
        except (*TROUBLE, BusError, AssertionError, ProcessLookupError) as error:
            self._say(f"{kind}: not now ({type(error).__name__})")
            return
        self._say(kind)
        alone = self._rng.random() < self._alone and calm
        self.faults.append(replace(fault, alone=alone, lasted_s=lasted_s))
        if alone:
            with contextlib.suppress(AssertionError):
                await eventually(lambda: self._whole(fault.probe.name), timeout_s=_PROBE_S)

    def _on_service(
        self, service: str, do: Callable[[int], Awaitable[None]]
    ) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            answers = (await self._suite.answers()).values()
            found = {one.instance: one for one in answers if one.service == service}
            assert found, f"no {service} answers"
            active = sorted(name for name, one in found.items() if one.active)
            # A standby's death is a lesser accident; it happens, too.
            often = active and self._rng.random() < _ON_THE_ACTIVE
            await do(found[self._rng.choice(active if often else sorted(found))].pid)

        return work

    async def _kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    async def _kill_all(self) -> None:
        """Every service and NATS at once, as a power failure of their machine would."""
        pids = [one.pid for one in (await self._suite.answers()).values()]
        for pid in [self._suite.nats_pid(), *pids]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _all_hung(self, service: str) -> Callable[[], Awaitable[None]]:
        """All processes of a service hang together: no other takes over."""

        async def work() -> None:
            answers = (await self._suite.answers()).values()
            pids = [one.pid for one in answers if one.service == service]
            assert pids, f"no {service} answers"
            await self._hang(*pids)

        return work

    async def _hang(self, *pids: int) -> None:
        """Stop processes until each was replaced, or for long; what is left then continues."""
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            with contextlib.suppress(AssertionError):
                await eventually(lambda: not any(map(_is_there, pids)), timeout_s=_HUNG_S)
        finally:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    async def _stop(self, pid: int) -> None:
        os.kill(pid, signal.SIGTERM)

    async def _freeze(self, pid: int) -> None:
        """Stop it for a while; it continues whatever becomes of us."""
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(self._rng.uniform(*_FROZEN_S))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    async def _restart_apiserver(self) -> None:
        await asyncio.to_thread(self._control_plane.kill, APISERVER)
        await asyncio.to_thread(self._control_plane.restart, APISERVER)

    async def _restart_scheduler(self) -> None:
        # kube-scheduler ends itself when it finds its cache corrupted (klog.Fatal): seen here, too.
        if self._control_plane.runs(SCHEDULER):
            await asyncio.to_thread(self._control_plane.kill, SCHEDULER)
        else:
            self._say("kube-scheduler had ended by itself")
        await asyncio.to_thread(self._control_plane.restart, SCHEDULER)

    async def _delete_node(self) -> None:
        """Delete a node that has pods, and create another."""
        pods = (await self._client.get(PODS))["items"]
        used = sorted({pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")})
        listed = await self._client.get("/api/v1/nodes")
        there = {node["metadata"]["name"] for node in listed["items"]}
        name = self._rng.choice([one for one in used if one in there] or sorted(there))
        await self._client.delete(f"/api/v1/nodes/{name}")
        self._nodes += 1
        fresh = node_manifest(f"fresh-{self._nodes}", NodeShape())
        await self._client.create("/api/v1/nodes", fresh)

    async def _delete_member(self) -> None:
        victims = self._users.victims()
        assert victims, "no gang is whole"
        gang = self._rng.choice(victims)
        pods = [
            pod
            for pod in (await self._client.get(PODS))["items"]
            if pod["metadata"]["name"].startswith(f"{gang.name}-")
        ]
        assert pods, f"{gang.name} has ended"
        name = self._rng.choice(sorted(pod["metadata"]["name"] for pod in pods))
        await self._client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})

    async def _natives(self) -> None:
        await self._users.remove_natives()
        await self._users.natives(_NATIVES)

    async def _natives_first(self) -> None:
        """Gangs are decided and not bound, because all binders are frozen; the other scheduler
        fills every node in that time. The API server refuses nothing of that; kubelets do.
        """
        answers = (await self._suite.answers()).values()
        binders = [one.pid for one in answers if one.service == "binder"]
        await self._users.remove_natives()
        try:
            for pid in binders:
                os.kill(pid, signal.SIGSTOP)
            self._users.rush(_RUSH)
            await self._users.natives(self._users.room)
            await asyncio.sleep(_BOUND_BY_OTHERS_S)
        finally:
            for pid in binders:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        await asyncio.sleep(_BOUND_BY_OTHERS_S)
        await self._users.remove_natives()


def _is_there(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
