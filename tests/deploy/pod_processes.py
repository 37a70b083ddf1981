"""Kubelets that run the release's pods as processes; all other pods are played as before.

What the chart rendered is what runs: command, arguments, environment, mounted Secrets and
ConfigMaps, the ServiceAccount's token (by TokenRequest, bound to the pod), user, read-only root,
probes, grace. Pods have addresses of their own in 127.1.0.0/16, so that ports do not collide. What
is not done: images, limits, network policies, restart back-off beyond a second.
"""

import asyncio
import base64
import contextlib
import os
import shutil
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import aiohttp
from typing_extensions import override

from tests.controlplane.client import STRATEGIC_PATCH, ApiError, Object, RawClient
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.processes import Component
from tests.deploy.sandbox import Mount, identity, script
from tests.deploy.service_proxy import ServiceProxy, names_of

LABEL: Final = ("app.kubernetes.io/name", "tutti")
_LOOK_S: Final = 0.25
_RESTART_S: Final = 1.0


class PodProcesses(FakeKubelet):
    """``run`` it in a task; cancelling it ends every process."""

    def __init__(self, client: RawClient, proxy: ServiceProxy, folder: Path) -> None:
        """Pods' folders and logs are below ``folder``."""
        super().__init__(client)
        self.proxy = proxy
        self.folder = folder
        self.lives: dict[str, PodProcess] = {}
        self._group: asyncio.TaskGroup | None = None

    @property
    def api(self) -> RawClient:
        """The API server's client."""
        return self._client

    @override
    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(super().run(), name="kubelets")
            group.create_task(self.proxy.run(self._ready_pods), name="service-proxy")

    async def kill(self, namespace: str, name: str) -> None:
        """Kill the first container of a pod without warning; it is started again."""
        (life,) = (
            life
            for life in self.lives.values()
            if not life.gone
            and (life.pod["metadata"]["namespace"], life.pod["metadata"]["name"])
            == (namespace, name)
        )
        await life.kill()

    @override
    def see_pod(self, kind: str, pod: Object) -> None:
        if (pod["metadata"].get("labels") or {}).get(LABEL[0]) != LABEL[1]:
            super().see_pod(kind, pod)
            return
        uid = pod["metadata"]["uid"]
        life = self.lives.get(uid)
        if kind == "DELETED":
            if life is not None:
                life.gone = True
                life.stopping.set()
        elif life is not None:
            life.update(pod)
        elif self._group is not None and pod["status"].get("phase") in {None, "Pending"}:
            life = self.lives[uid] = PodProcess(self, pod)
            self._group.create_task(life.run(), name=f"pod-{pod['metadata']['name']}")

    def _ready_pods(self) -> list[Object]:
        return [life.shown for life in self.lives.values() if life.ready and not life.gone]


class PodProcess:
    """One pod."""

    def __init__(self, kubelet: PodProcesses, pod: Object) -> None:
        self.pod = pod
        self.gone = False
        self.stopping = asyncio.Event()
        self.kubelet = kubelet
        metadata = pod["metadata"]
        self._namespace, self._name = metadata["namespace"], metadata["name"]
        self._path = f"/api/v1/namespaces/{self._namespace}/pods/{self._name}"
        self.address = kubelet.proxy.address_of(self._namespace, self._name)
        self.folder = kubelet.folder / metadata["uid"]
        self._containers = [_Container(self, one) for one in pod["spec"]["containers"]]
        self._sent: Object = {}
        self._sending = asyncio.Lock()

    @property
    def ready(self) -> bool:
        """Whether all its containers are."""
        return all(one.ready for one in self._containers)

    @property
    def shown(self) -> Object:
        """The pod with its address."""
        return {**self.pod, "status": {"podIP": self.address}}

    async def kill(self) -> None:
        """Kill its first container."""
        await self._containers[0].kill()

    def log(self, container: str) -> Path:
        """Where a container writes to."""
        uid = self.pod["metadata"]["uid"][:5]
        return self.kubelet.folder / f"{self._name}.{uid}.{container}.log"

    def update(self, pod: Object) -> None:
        """The API server shows the pod again."""
        self.pod = pod
        if pod["metadata"].get("deletionTimestamp"):
            self.stopping.set()

    async def run(self) -> None:
        """From its volumes to its removal."""
        self.update(self.pod)
        try:
            await self._live()
            await self.stopping.wait()
        except ApiError as error:
            if error.status not in {404, 409}:
                raise
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        if not self.gone:
            with contextlib.suppress(ApiError):
                body: Object = {"gracePeriodSeconds": 0}
                body["preconditions"] = {"uid": self.pod["metadata"]["uid"]}
                await self.kubelet.api.delete(self._path, body)

    async def _live(self) -> None:
        laid = await self._volumes()
        if laid is None:
            return
        variables = self._variables()
        async with asyncio.TaskGroup() as group:
            for one in self._containers:
                group.create_task(one.run(laid, variables), name=f"container-{self._name}")

    async def report(self) -> None:
        """Write the status, if it is another one."""
        statuses = [one.status() for one in self._containers]
        codes = [one.final for one in self._containers if one.final is not None]
        phase = "Running"
        if len(codes) == len(self._containers):
            phase = "Failed" if any(codes) else "Succeeded"
        conditions = dict.fromkeys(("ContainersReady", "Ready"), self.ready)
        status: Object = {
            "phase": phase,
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "conditions": [
                {"type": kind, "status": str(value)}
                for kind, value in {"Initialized": True, **conditions}.items()
            ],
            "containerStatuses": statuses,
        }
        async with self._sending:
            if status == self._sent or self.gone:
                return
            self._sent = status
            body: Object = {"metadata": {"uid": self.pod["metadata"]["uid"]}, "status": status}
            await self.kubelet.api.patch(f"{self._path}/status", body, STRATEGIC_PATCH)

    def _variables(self) -> dict[str, str]:
        fields = {
            "status.podIP": self.address,
            "metadata.name": self._name,
            "metadata.uid": self.pod["metadata"]["uid"],
            "metadata.namespace": self._namespace,
        }
        server = self.kubelet.api.server.rpartition("//")[2]
        host, _, port = server.partition(":")
        variables = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        return variables | {f"field:{path}": value for path, value in fields.items()}

    async def _volumes(self) -> dict[str, Path] | None:
        """Lay out the volumes, as soon as what they come from is there; None when it is to stop."""
        self.folder.mkdir(parents=True)
        laid: dict[str, Path] = {}
        for volume in self.pod["spec"].get("volumes", ()):
            laid[volume["name"]] = self.folder / "volumes" / volume["name"]
            while not await self._laid_out(volume, laid[volume["name"]]):
                if await self.stops_within(_LOOK_S):
                    return None
        names = await names_of(self.kubelet.api, self.kubelet.proxy)
        lines = [f"{ip} {name}\n" for name, ip in {**names, "localhost": "127.0.0.1"}.items()]
        (self.folder / "hosts").write_text("".join(lines))
        return laid

    async def _laid_out(self, volume: Object, folder: Path) -> bool:
        """Fill the folder of one volume; False while its source is missing."""
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            kept = self.kubelet.folder / "claims" / f"{self._namespace}.{claim}"
            await asyncio.to_thread(self._lay_claim, kept, folder)
            return True
        content: dict[str, bytes] | None = {}
        mode = 0o644
        if "secret" in volume:
            content = await self._data_of("secrets", volume["secret"]["secretName"])
            mode = volume["secret"].get("defaultMode", mode)
        elif "configMap" in volume:
            content = await self._data_of("configmaps", volume["configMap"]["name"])
        elif "projected" in volume:
            content = await self._projected(volume["projected"]["sources"])
        if content is None:
            return False
        await asyncio.to_thread(self._lay, content, folder, mode)
        return True

    def _lay_claim(self, kept: Path, folder: Path) -> None:
        """A volume that outlives the pod."""
        kept.mkdir(parents=True, exist_ok=True)
        self._give(kept)
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.symlink_to(kept)

    def _lay(self, content: Mapping[str, bytes], folder: Path, mode: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._give(folder)
        for name, data in content.items():
            (folder / name).write_bytes(data)
            (folder / name).chmod(mode)
            self._give(folder / name, only_group=True)

    def _give(self, path: Path, *, only_group: bool = False) -> None:
        """To the pod's group, as the kubelet does by fsGroup."""
        group = (self.pod["spec"].get("securityContext") or {}).get("fsGroup", 0)
        user = 0 if only_group else identity(self.pod, self.pod["spec"]["containers"][0]).user
        os.chown(path, user, group)

    async def _data_of(self, plural: str, name: str) -> dict[str, bytes] | None:
        path = f"/api/v1/namespaces/{self._namespace}/{plural}/{name}"
        try:
            found = await self.kubelet.api.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        data: Mapping[str, Any] = found.get("data") or {}
        if plural == "secrets":
            return {key: base64.b64decode(value) for key, value in data.items()}
        return {key: str(value).encode() for key, value in data.items()}

    async def _projected(self, sources: list[Object]) -> dict[str, bytes] | None:
        content: dict[str, bytes] = {}
        for source in sources:
            if "serviceAccountToken" in source:
                content[source["serviceAccountToken"]["path"]] = await self._token()
            elif "configMap" in source:
                found = await self._data_of("configmaps", source["configMap"]["name"])
                if found is None:
                    return None
                content |= found
            else:
                content["namespace"] = self._namespace.encode()
        return content

    async def _token(self) -> bytes:
        account = self.pod["spec"]["serviceAccountName"]
        metadata = self.pod["metadata"]
        bound: Object = {
            "kind": "Pod",
            "apiVersion": "v1",
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{account}/token"
        body: Object = {"spec": {"boundObjectRef": bound, "expirationSeconds": 3607}}
        answer = await self.kubelet.api.create(path, body)
        return str(answer["status"]["token"]).encode()

    async def stops_within(self, timeout_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.stopping.wait()
        return self.stopping.is_set()


class _Container:
    """One container of a pod."""

    def __init__(self, pod: PodProcess, spec: Object) -> None:
        self.ready = False
        #: Its exit status, once it is not started again.
        self.final: int | None = None
        self._pod = pod
        self._spec = spec
        self._ended: int | None = None
        self._restarts = 0
        self._process: Component | None = None

    async def kill(self) -> None:
        """Kill what runs. Raises ComponentError when nothing does."""
        assert self._process is not None, "never started"
        await asyncio.to_thread(self._process.kill)

    def status(self) -> Object:
        """As a kubelet reports it."""
        runs = self._ended is None
        return {
            "name": self._spec["name"],
            "image": self._spec["image"],
            "imageID": "",
            "ready": self.ready,
            "started": runs,
            "restartCount": self._restarts,
            "state": {
                "running": {} if runs else None,
                "terminated": None if runs else {"exitCode": self._ended},
            },
        }

    async def run(self, laid: Mapping[str, Path], variables: Mapping[str, str]) -> None:
        """Run, and again as the policy says, until the pod is to stop."""
        root = self._pod.folder / "roots" / self._spec["name"]
        root.mkdir(parents=True)
        policy = self._pod.pod["spec"].get("restartPolicy", "Always")
        mounts = self._mounts(laid)
        text = script(self._pod.pod, self._spec, mounts, self._environment(variables), root)
        while not self._pod.stopping.is_set():
            self._ended = await self._once(text)
            if self._ended is None:
                return
            if policy == "Never" or (policy == "OnFailure" and self._ended == 0):
                self.final = self._ended
                await self._pod.report()
                return
            self._restarts += 1
            await self._pod.report()
            await self._pod.stops_within(_RESTART_S)

    async def _once(self, text: str) -> int | None:
        """Run it once; its exit status, None when the pod is to stop."""
        command = ["/usr/bin/env", "unshare", "-m", "-u", "sh", "-c", text]
        name = self._spec["name"]
        process = self._process = Component(name, command, self._pod.log(name))
        self._ended = None
        await asyncio.to_thread(process.start)
        try:
            while process.is_running and not self._pod.stopping.is_set():
                self.ready = await self._probed()
                await self._pod.report()
                await self._pod.stops_within(_LOOK_S)
            return None if process.is_running else process.exit_status
        finally:
            self.ready = False
            grace_s = self._pod.pod["spec"].get("terminationGracePeriodSeconds", 30)
            await asyncio.to_thread(process.stop, float(grace_s))

    async def _probed(self) -> bool:
        probe = self._spec.get("readinessProbe")
        if probe is None:
            return True
        asked = probe["httpGet"]
        ports = {port.get("name"): port["containerPort"] for port in self._spec["ports"]}
        where = f"{self._pod.address}:{ports.get(asked['port'], asked['port'])}"
        timeout = aiohttp.ClientTimeout(total=probe.get("timeoutSeconds", 1))
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(f"http://{where}{asked['path']}") as answer,
            ):
                return answer.status < HTTPStatus.BAD_REQUEST
        except (aiohttp.ClientError, TimeoutError):
            return False

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        found = {name: value for name, value in variables.items() if ":" not in name}
        for one in self._spec.get("env", ()):
            source = one.get("valueFrom")
            if source is None:
                found[one["name"]] = one.get("value", "")
            else:
                found[one["name"]] = variables[f"field:{source['fieldRef']['fieldPath']}"]
        return found

    def _mounts(self, laid: Mapping[str, Path]) -> list[Mount]:
        mounts = [Mount(self._pod.folder / "hosts", "/etc/hosts", True)]
        # Those above before those below them.
        for one in sorted(self._spec.get("volumeMounts", ()), key=lambda one: one["mountPath"]):
            source = laid[one["name"]]
            mounts.append(Mount(source, one["mountPath"], bool(one.get("readOnly"))))
        return _with_mount_points(mounts)


def _with_mount_points(mounts: list[Mount]) -> list[Mount]:
    """See that a read-only folder has the folders that others are mounted on below it."""
    for outer in mounts:
        for inner in mounts:
            below = inner.target.removeprefix(f"{outer.target}/")
            if below != inner.target:
                (outer.source / below).mkdir(parents=True, exist_ok=True)
    return mounts
