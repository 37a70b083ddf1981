"""Kubelets whose pods hold processes: they end by exit code, by signal and by restart policy.

What `FakeKubelet` leaves out and controllers of jobs depend on: init containers, restarts with
back-off, a pod that is deleted gracefully is reported Failed before it is gone, volumes that must
be there first. No process is run: `sleep N` lasts N seconds, an image that serves lasts for ever,
anything else lasts `SIMULATED_S` and exits with 0; or as the `Nature` that is given says. The
annotation `EXIT` ends what runs.
"""

import asyncio
import contextlib
import datetime as dt
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from typing_extensions import override

from tests.controlplane.client import STRATEGIC_PATCH, ApiError, Object, RawClient
from tests.controlplane.kubelet import ENDED, FIRST_ADDRESS, FakeKubelet

EXIT: Final = "fakekubelet/exit"
"""Pod annotation: the exit code of what runs, now; any change of the text counts ("3 again")."""

START_S: Final = 0.3
PULL_S: Final = 5.0
END_S: Final = 0.2
SIMULATED_S: Final = 5.0
SIGTERMED: Final = 143
#: Images whose start is quick, as if they were on the node.
SMALL: Final = frozenset({"busybox", "nginx", "alpine", "bash", "ubuntu", "debian"})
SERVING: Final = frozenset({"nginx", "pause", "httpd", "agnhost"})
_SERVES: Final = re.compile(r"sshd -D|--block|serve")
_SLEEP: Final = re.compile(r"(?:(?:/bin/)?(?:ba)?sh -c )?sleep (\d+)s?;?")
#: The init container of the plugin pytorch: it can reach no pod here, and gives up.
_WAITS_FOR_MASTER: Final = "wait-for-master"

Nature: TypeAlias = Callable[[Object], tuple[float | None, int]]
"""Of a container's spec: how long it runs (None: for ever), and its exit code then."""


class ProcessKubelet(FakeKubelet):
    """``run`` it in a task; one task per pod plays it."""

    def __init__(
        self, client: RawClient, *, nature: Nature | None = None, pull_s: float = PULL_S
    ) -> None:
        super().__init__(client)
        self.nature: Final = nature or recorded_nature
        self.pull_s: Final = pull_s
        self._lives: dict[str, _PodLife] = {}
        self._group: asyncio.TaskGroup | None = None

    @override
    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._follow("/api/v1/nodes", self._see_node), name="kubelet-nodes")
            query = {"fieldSelector": "spec.nodeName!="}
            pods = self._follow("/api/v1/pods", self.see_pod, **query)
            group.create_task(pods, name="kubelet-pods")

    @override
    def see_pod(self, kind: str, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self._pods.pop(uid, None)
            self._release(pod)
            life = self._lives.pop(uid, None)
            if life is not None:
                life.removed()
            return
        self._pods[uid] = pod
        self._enqueue(uid)

    @override
    def _enqueue(self, uid: str) -> None:
        pod = self._pods[uid]
        if uid in self._lives:
            self._lives[uid].update(pod)
        elif pod["spec"]["nodeName"] in self._nodes and self._group is not None:
            life = self._lives[uid] = _PodLife(self, pod)
            self._group.create_task(life.run(), name=f"pod-{pod['metadata']['name']}")

    def admit(self, pod: Object) -> tuple[str, str] | None:
        """Take the pod's room on its node, or say why it has none."""
        refusal = self._refusal(pod)
        if refusal is None:
            self._take(pod)
        return refusal

    def give_back(self, pod: Object) -> None:
        """The pod's processes have ended."""
        self._release(pod)

    def address(self) -> str:
        """An address for one more pod."""
        self._ips += 1
        return str(FIRST_ADDRESS + self._ips)

    @property
    def api(self) -> RawClient:
        """The API server's client."""
        return self._client


class _Container:
    """One container: what it runs, and what is reported of it."""

    def __init__(self, life: "_PodLife", spec: Object, *, init: bool) -> None:
        self._life, self._spec, self._init = life, spec, init
        self.state: Object = {"waiting": {"reason": "ContainerCreating"}}
        self.ready = False
        self.code = 0
        self._last: Object = {}
        self._restarts = 0

    @property
    def image(self) -> str:
        """The image's name without registry and tag."""
        return image_name(self._spec)

    def status(self) -> Object:
        """As a kubelet reports it."""
        return {
            "name": self._spec["name"],
            "image": self._spec.get("image", ""),
            "imageID": "none",
            "ready": self.ready,
            "started": "running" in self.state,
            "restartCount": self._restarts,
            "state": self.state,
            "lastState": self._last,
        }

    async def run(self) -> int:
        """Run, and again as the policy says; returns the final exit code."""
        policy = self._life.pod["spec"].get("restartPolicy", "Always")
        while True:
            started = _now()
            self.state, self.ready = {"running": {"startedAt": started}}, not self._init
            await self._life.report()
            code = await self._once()
            ended: Object = {
                "terminated": {
                    "exitCode": code,
                    "reason": "Completed" if code == 0 else "Error",
                    "startedAt": started,
                    "finishedAt": _now(),
                }
            }
            self.state, self.ready, self.code = ended, False, code
            final = policy == "Never" or (code == 0 and (self._init or policy == "OnFailure"))
            if self._life.stopping.is_set() or final:
                return code
            if await self._backed_off(ended):
                return code

    async def _backed_off(self, ended: Object) -> bool:
        """Wait before the next start; return whether the pod is to stop instead."""
        await self._life.report()
        if self._restarts:
            self._last = ended
            self.state = {"waiting": {"reason": "CrashLoopBackOff"}}
            await self._life.report()
        delay_s = 1.0 if self._restarts == 0 else min(10.0 * 2 ** (self._restarts - 1), 300.0)
        if await self._life.stops_within(delay_s):
            self.state = ended
            return True
        self._restarts += 1
        self._last = ended
        return False

    async def _once(self) -> int:
        """One run; its exit code."""
        lasts_s, code = self._life.nature(self._spec)
        requested = await self._life.requested_code(lasts_s)
        if requested is not None:
            return requested
        if self._life.stopping.is_set():
            return 0 if lasts_s is None and self.image in SERVING else SIGTERMED
        return code


class _PodLife:
    """What becomes of one pod (one UID) on its node."""

    def __init__(self, kubelet: ProcessKubelet, pod: Object) -> None:
        self.pod = pod
        self.stopping = asyncio.Event()
        self._kubelet = kubelet
        self._gone = False
        self._requested_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._exit = self._asked_exit(pod)
        self._path = _path(pod)
        self._phase = str(pod["status"].get("phase", "Pending"))
        self._address = str(pod["status"].get("podIP", ""))
        self._initialized = False
        spec = pod["spec"]
        self._inits = [_Container(self, one, init=True) for one in spec.get("initContainers", ())]
        self._containers = [_Container(self, one, init=False) for one in spec["containers"]]
        self._sent: Object | None = None
        self._sending = asyncio.Lock()

    def update(self, pod: Object) -> None:
        """The API server shows the pod again."""
        self.pod = pod
        asked = self._asked_exit(pod)
        if asked and asked != self._exit:
            self._exit = asked
            if not self._requested_code.done():
                self._requested_code.set_result(int(asked.split()[0]))
        if pod["metadata"].get("deletionTimestamp"):
            self.stopping.set()

    def removed(self) -> None:
        """It is gone from the API server."""
        self._gone = True
        self.stopping.set()

    def nature(self, container: Object) -> tuple[float | None, int]:
        """How a container of it runs."""
        return self._kubelet.nature(container)

    async def stops_within(self, timeout_s: float) -> bool:
        """Wait; whether it is to stop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.stopping.wait()
        return self.stopping.is_set()

    async def requested_code(self, timeout_s: float | None) -> int | None:
        """Wait so long, or until it is to stop; return the exit code requested by then."""
        if self._requested_code.done():
            self._requested_code = asyncio.get_running_loop().create_future()
        code = self._requested_code
        stop = asyncio.ensure_future(self.stopping.wait())
        ends: set[asyncio.Future[Any]] = {code, stop}
        try:
            await asyncio.wait(ends, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
        return code.result() if code.done() else None

    async def run(self) -> None:
        """Play it to its end; errors of a pod that is gone are its end too."""
        try:
            await self._play()
        except ApiError as error:
            if error.status not in {404, 409}:
                raise

    async def report(self) -> None:
        """Write the status, if it is another one."""
        if not self._gone:
            await self._send(self._status())

    async def _play(self) -> None:
        self.update(self.pod)
        if self._phase not in ENDED:
            refusal = self._kubelet.admit(self.pod)
            if refusal is not None:
                self._phase = "Failed"
                reason, message = refusal
                await self._send({"phase": "Failed", "reason": reason, "message": message})
            else:
                try:
                    await self._live()
                finally:
                    self._kubelet.give_back(self.pod)
        await self.stopping.wait()
        if not self._gone:
            precondition = {"uid": self.pod["metadata"]["uid"]}
            body: Object = {"gracePeriodSeconds": 0, "preconditions": precondition}
            await self._kubelet.api.delete(self._path, body)

    async def _live(self) -> None:
        await self.report()
        await self._mount()
        large = any(one.image not in SMALL | SERVING for one in self._inits + self._containers)
        if not await self.stops_within(self._kubelet.pull_s if large else START_S):
            self._address = self._address or self._kubelet.address()
        failed = await self._initialize()
        if not failed and not self.stopping.is_set():
            self._phase = "Running"
            await asyncio.gather(*(one.run() for one in self._containers))
        for one in self._containers:
            if "waiting" in one.state:
                one.code = 137
                one.state = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}
        good = not failed and all(one.code == 0 for one in self._containers)
        if self.stopping.is_set() and not self._gone:
            await asyncio.sleep(END_S)
        self._phase = "Succeeded" if good else "Failed"
        # As a real one: a pod that has ended takes no capacity, from before clients can read that.
        self._kubelet.give_back(self.pod)
        await self.report()

    async def _initialize(self) -> bool:
        """Run the init containers in order; whether one failed."""
        for one in self._inits:
            if self.stopping.is_set():
                return True
            if await one.run() != 0:
                return True
        self._initialized = True
        return False

    async def _mount(self) -> None:
        """Wait for what the pod's volumes come from."""
        for volume in self.pod["spec"].get("volumes", ()):
            for source, key, plural in (
                ("configMap", "name", "configmaps"),
                ("secret", "secretName", "secrets"),
                ("persistentVolumeClaim", "claimName", "persistentvolumeclaims"),
            ):
                found = volume.get(source)
                if found is None or found.get("optional"):
                    continue
                while not await self._is_there(plural, found[key]):
                    if await self.stops_within(0.5):
                        return

    async def _is_there(self, plural: str, name: str) -> bool:
        namespace = self.pod["metadata"]["namespace"]
        try:
            found = await self._kubelet.api.get(f"/api/v1/namespaces/{namespace}/{plural}/{name}")
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        claim = plural == "persistentvolumeclaims"
        return not claim or found.get("status", {}).get("phase") == "Bound"

    def _status(self) -> Object:
        done = self._phase in ENDED
        ready = bool(self._containers) and all(one.ready for one in self._containers)
        conditions = {
            "Initialized": self._initialized,
            "ContainersReady": ready,
            "Ready": ready,
        }
        status: Object = {
            "phase": self._phase,
            "startTime": self.pod["metadata"]["creationTimestamp"],
            "conditions": [
                {"type": name, "status": "True" if value else "False"}
                | ({} if value or not done else {"reason": "PodCompleted"})
                for name, value in conditions.items()
            ],
            "containerStatuses": [one.status() for one in self._containers],
            "initContainerStatuses": [one.status() for one in self._inits] or None,
        }
        if self._address:
            status |= {"podIP": self._address, "podIPs": [{"ip": self._address}]}
        return status

    async def _send(self, status: Object) -> None:
        """One at a time: a late "Running" must not overtake "Succeeded"."""
        async with self._sending:
            if status == self._sent:
                return
            self._sent = status
            body: Object = {"metadata": {"uid": self.pod["metadata"]["uid"]}, "status": status}
            await self._kubelet.api.patch(f"{self._path}/status", body, STRATEGIC_PATCH)

    @staticmethod
    def _asked_exit(pod: Object) -> str:
        return str((pod["metadata"].get("annotations") or {}).get(EXIT, ""))


def recorded_nature(container: Object) -> tuple[float | None, int]:
    """As in the recordings."""
    words = [*container.get("command", ()), *container.get("args", ())]
    line = " ".join(words)
    if container["name"] == _WAITS_FOR_MASTER:
        return SIMULATED_S, 1
    if not words:
        image = image_name(container)
        return (None, 0) if image in SERVING or image not in SMALL else (0.2, 0)
    sleeping = _SLEEP.fullmatch(line)
    if sleeping:
        return float(sleeping[1]), 0
    return (None, 0) if _SERVES.search(line) else (SIMULATED_S, 0)


def image_name(container: Object) -> str:
    """An image's name without registry and tag."""
    return str(container.get("image", "")).rsplit("/", 1)[-1].split(":")[0]


def _path(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
