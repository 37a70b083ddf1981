"""Users and their controllers: gangs come, are made whole again when members are lost, and go.

The controller is as plain as a controller can be: twice a second it lists what there is, removes
pods that failed or whose node is gone, and makes those that are missing, under the same names or
under new ones. It knows nothing of scheduling. A Volcano Job has a controller of its own, Tutti's:
of its pods only those whose nodes are gone are removed here.
"""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import ClientError

from tests.chaos.forms import (
    FORMS,
    GANG,
    KUBE_SCHEDULER,
    MEMBER,
    NAMESPACE,
    TUTTI,
    VOLCANO_GROUPS,
    Form,
    manifest_of,
    member_of,
    number_of,
    path_of,
)
from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.nodes import create_pods, pod_manifest

PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
#: In the name of a pod whose binding the policy refuses.
POISON: Final = "poison"
_NATIVE: Final = "chaos.test/native"
_PASS_S: Final = 0.5
#: What an API server that is down or starting does to a client.
TROUBLE: Final = (ApiError, ClientError, TimeoutError, OSError)


@dataclass
class Gang:
    """What a user wants, and how far it has come."""

    name: str
    size: int
    minimum: int
    owned: bool
    poisoned: bool
    #: Members that are made again keep their names, as a StatefulSet's do.
    same_names: bool
    #: From whole to the end; of a poisoned one, from its beginning.
    lives_s: float
    form: Form = "volcano"
    scheduler: str = TUTTI
    #: Annotations of the declaring object.
    settings: dict[str, str] = field(default_factory=dict)
    #: Name of its PodGroup; "" until it has one.
    group: str = ""
    made_at_s: float | None = None
    whole_at_s: float | None = None
    made: int = 0
    #: Its user deletes it.
    ending: bool = False
    ended: bool = False

    def pod(self, member: int) -> Object:
        """One member, made now."""
        self.made += 1
        suffix = "" if self.same_names else f"-{self.made}"
        poison = f"-{POISON}" if self.poisoned and not member else ""
        name = f"{self.name}-{member}{poison}{suffix}"
        return member_of(
            self.name, name, member, owned=self.owned, form=self.form, scheduler=self.scheduler
        )


@dataclass
class Users:
    """All users that make pods in a run."""

    client: RawClient
    rng: random.Random
    #: Gangs alive at once, besides the poisoned ones and the probes.
    alive_max: int
    #: Pods that all nodes together have room for.
    room: int
    gangs: dict[str, Gang] = field(default_factory=dict)
    #: Requests that the API server did not serve, and which were made again later.
    troubles: int = 0
    #: Gangs come and go; without it, those that are there stay and must be whole.
    coming: bool = True
    _serial: int = 0
    _natives: int = 0

    async def run(self) -> None:
        """Make, mend and end gangs until cancelled."""
        while True:
            try:
                await self._pass()
            except TROUBLE:
                self.troubles += 1
            await asyncio.sleep(_PASS_S)

    def probe(self) -> Gang:
        """A small gang; when it reaches its quorum, all services work again."""
        return self._new("probe", size=2, minimum=2, owned=True, lives_s=1.0)

    def rush(self, count: int) -> None:
        """Gangs that come in at once, so that what happens now happens to gangs on their way.

        One of them is refused a member, so that releases are on their way, too.
        """
        for _ in range(count):
            self._draw()
        self._poisoned(owned=True)

    def victims(self) -> list[Gang]:
        """Gangs that are whole and not about to end: of these a member may be lost."""
        return [one for one in self.alive() if one.whole_at_s is not None and not one.poisoned]

    def alive(self) -> list[Gang]:
        """Gangs that have not ended."""
        return [one for one in self.gangs.values() if not one.ended]

    async def natives(self, count: int) -> None:
        """Pods of the cluster's own scheduler, on the same nodes; they are gone after a while."""
        pods = []
        for _ in range(count):
            self._natives += 1
            pod = pod_manifest(
                f"native-{self._natives}",
                requests={"cpu": "1"},
                scheduler_name=KUBE_SCHEDULER,
                labels={_NATIVE: "yes"},
            )
            pods.append(pod)
        await create_pods(self.client, NAMESPACE, pods)

    async def remove_natives(self) -> None:
        """Delete all pods of the cluster's own scheduler."""
        await self.client.request(
            "DELETE", PODS, {"gracePeriodSeconds": 0}, params={"labelSelector": f"{_NATIVE}=yes"}
        )

    async def _pass(self) -> None:
        if self.coming:
            self.arrive()
        listed = await self.client.get(PODS, labelSelector=GANG)
        nodes = await self.client.get("/api/v1/nodes")
        there = {node["metadata"]["name"] for node in nodes["items"]}
        pods: dict[str, dict[int, Object]] = {}
        for pod in listed["items"]:
            labels = pod["metadata"]["labels"]
            lost = pod["spec"].get("nodeName") and pod["spec"]["nodeName"] not in there
            failed = pod["status"].get("phase") == "Failed" and MEMBER in labels
            if lost or failed:
                await self._delete(pod)
            else:
                pods.setdefault(labels[GANG], {})[number_of(pod)] = pod
        for gang in self.alive():
            await self._mend(gang, pods.get(gang.name, {}))

    def arrive(self) -> None:
        lively = [one for one in self.alive() if not one.poisoned]
        if len(lively) < self.alive_max and self.rng.random() < 0.7:
            self._draw()
        if not any(one.poisoned and not one.owned for one in self.alive()):
            self._poisoned(owned=False)

    def _poisoned(self, *, owned: bool) -> None:
        lives_s = self.rng.uniform(5.0, 20.0)
        self._new("bad", size=4, minimum=4, owned=owned, lives_s=lives_s, poisoned=True)

    def _draw(self) -> None:
        rng = self.rng
        size = rng.randint(2, 6)
        self._new(
            "gang",
            size=size,
            minimum=size if rng.random() < 0.7 else max(2, size - 2),
            owned=rng.random() < 0.75,
            lives_s=rng.uniform(3.0, 15.0),
            form=rng.choice(FORMS),
        )

    def _new(self, kind: str, **fields: Any) -> Gang:
        self._serial += 1
        name = f"{kind}-{self._serial}"
        fields.setdefault("poisoned", False)
        gang = Gang(name, same_names=self.rng.random() < 0.5, **fields)
        self.gangs[name] = gang
        return gang

    async def _mend(self, gang: Gang, pods: dict[int, Object]) -> None:
        """One gang, one step nearer to what its user wants."""
        now_s = asyncio.get_running_loop().time()
        if gang.made_at_s is None:
            gang.made_at_s = now_s
        if gang.ending or self.is_over(gang, pods, now_s):
            gang.ending = True
            await self._end(gang, pods)
            return
        running = [pod for pod in pods.values() if pod["status"].get("phase") == "Running"]
        if gang.whole_at_s is None and len(running) >= gang.minimum:
            gang.whole_at_s = now_s
        if not gang.group:
            await self.declare(gang)
        if gang.form != "job":
            for member in self._missing(gang, pods):
                await self._create(PODS, gang.pod(member))

    def is_over(self, gang: Gang, pods: dict[int, Object], now_s: float) -> bool:
        """Whether its user deletes it now: `pods` are its members by number."""
        since_s = gang.made_at_s if gang.poisoned else gang.whole_at_s
        return self.coming and since_s is not None and now_s > since_s + gang.lives_s

    async def declare(self, gang: Gang) -> None:
        path = path_of(gang.form)
        wanted = manifest_of(
            gang.form, gang.name, size=gang.size, minimum=gang.minimum, settings=gang.settings
        )
        await self._create(path, wanted)
        group = gang.name
        if gang.form == "job":
            made = await self.client.get(f"{path}/{gang.name}")
            group = f"{gang.name}-{made['metadata']['uid']}"
        # Only now: the API server may be killed between the two requests, and then both are made
        # again.
        gang.group = group

    async def _end(self, gang: Gang, pods: dict[int, Object]) -> None:
        """Delete the declaring object first: then no controller recreates the pods. For a Job this
        also does the garbage collector's work.
        """
        paths = [f"{path_of(gang.form)}/{gang.name}"]
        if gang.form == "job" and gang.group:
            paths.append(f"{VOLCANO_GROUPS}/{gang.group}")
        for path in paths:
            try:
                await self.client.delete(path)
            except ApiError as error:
                if error.status != 404:
                    raise
        for pod in pods.values():
            await self._delete(pod)
        gang.ended = not pods

    @staticmethod
    def _missing(gang: Gang, pods: dict[int, Object]) -> Iterator[int]:
        return (member for member in range(gang.size) if member not in pods)

    async def _create(self, path: str, manifest: Object) -> None:
        try:
            await self.client.create(path, manifest)
        except ApiError as error:
            if error.status != 409:  # it is there, or still on its way out
                raise

    async def _delete(self, pod: Object) -> None:
        options: Object = {
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod["metadata"]["uid"]},
        }
        try:
            await self.client.delete(f"{PODS}/{pod['metadata']['name']}", options)
        except ApiError as error:
            if error.status not in {404, 409}:
                raise
