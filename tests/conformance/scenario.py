"""Plays the steps of one lifecycle case in a namespace of its own, and takes the states."""

import asyncio
import contextlib
import copy
import json
import re
import time
from collections.abc import Sequence
from typing import Any, Final

from tests.conformance.cluster_view import CLUSTER_WIDE, ClusterView, kind_of, path
from tests.conformance.normal_form import KINDS_SHOWN, Names, brief, shown
from tests.conformance.process_kubelet import EXIT
from tests.conformance.recordings import Object, Recorded
from tests.controlplane.client import JSON_PATCH, ApiError, RawClient
from tests.support.waiting import eventually

#: Kinds whose UIDs owner references name.
OWNERS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "batch/Job")
KINDS_WATCHED: Final = (*OWNERS, *KINDS_SHOWN, "Event")
#: Whose events are Kubernetes' own.
_KUBERNETES: Final = frozenset(
    {
        "default-scheduler",
        "kubelet",
        "deployment-controller",
        "replicaset-controller",
        "statefulset-controller",
        "job-controller",
        "endpoint-controller",
        "node-controller",
        "taint-eviction-controller",
        "persistentvolume-controller",
        "namespace-controller",
        "endpoint-slice-controller",
        "garbage-collector-controller",
        "controllermanager",
    }
)
_LOOK_S: Final = 0.2
#: A state that has not come to rest by then is taken as it is.
SETTLE_MAX_S: Final = 60.0
#: Objects need a moment to reach the caches of all controllers before the first step.
_GIVEN_S: Final = 1.0
_GONE_S: Final = 30.0


class Scenario:
    """One case on one cluster."""

    def __init__(self, api: RawClient, view: ClusterView, case: Object, *, quiet_s: float) -> None:
        """Prepare.

        Args:
            api: Of the cluster.
            view: Of the same cluster, of `KINDS_WATCHED`.
            case: As read.
            quiet_s: So long nothing may have changed before a state is taken.
        """
        self._api, self._view, self._case = api, view, case
        self._quiet_s = quiet_s
        self._ns = f"c-{case['name']}"
        self._names = Names(self._ns)
        self._lives: dict[str, list[str]] = {}
        self._states_seen: set[str] = set()
        self._own = [*case.get("given", ()), *(s["create"] for s in case["steps"] if "create" in s)]
        self._queues = {o["metadata"]["name"] for o in self._own if o["kind"] == "Queue"}

    async def play(self) -> list[Recorded]:
        """State and new events after each step; the case's objects are gone afterwards."""
        await self._api.create(path("Namespace"), {"metadata": {"name": self._ns}})
        played = []
        try:
            for found in self._case.get("given", ()):
                await create(self._api, found, self._ns)
            await asyncio.sleep(_GIVEN_S)
            for step in self._case["steps"]:
                await self._do(step)
                state = await self._settled(float(step.get("wait", 0)))
                played.append(Recorded(state, self._events()))
        finally:
            await self._clean()
        return _ranked(played)

    def _mine(self, kind: str) -> list[Object]:
        if kind == "Queue":
            return [o for o in self._view.of(kind) if o["metadata"]["name"] in self._queues]
        return [o for o in self._view.of(kind) if o["metadata"].get("namespace") == self._ns]

    def _state(self) -> Object:
        for kind in (*OWNERS, *KINDS_SHOWN):
            for found in self._mine(kind):
                self._names.learn(kind, found)
        state: Object = {}
        for kind in KINDS_SHOWN:
            for found in self._mine(kind):
                metadata = found["metadata"]
                if metadata["name"] == "kube-root-ca.crt":
                    continue
                key = f"{kind}/{self._names(self._names.short(metadata))}"
                lives = self._lives.setdefault(key, [])
                if metadata["uid"] not in lives:
                    lives.append(metadata["uid"])
                seen = self._names(shown(kind, found))
                state[key] = brief(key[4:], seen) if kind == "Pod" else seen
                if len(lives) > 1:
                    state[key] |= {"life": len(lives)}
        return state

    def _events(self) -> list[Object]:
        found = []
        for event in self._view.of("Event"):
            about = event["involvedObject"]
            source = event.get("source", {}).get("component") or event.get("reportingComponent")
            mine = about.get("namespace") == self._ns or (
                about["kind"] == "Queue" and self._names.knows(about.get("uid"))
            )
            if source in _KUBERNETES or not mine:
                continue
            name = self._names.random.get(about["name"], about["name"])
            state = {
                "object": self._names(f"{about['kind']}/{name}"),
                "type": event["type"],
                "reason": event["reason"],
                "message": self._names(event["message"]),
            }
            key = json.dumps(state)
            if key not in self._states_seen:
                self._states_seen.add(key)
                found.append(state)
        return sorted(found, key=json.dumps)

    async def _settled(self, least_s: float) -> Object:
        """The state once it has not changed for a while, and at least so many seconds passed."""
        clock_s = asyncio.get_running_loop().time
        started_s = since_s = clock_s()
        last: Object = {}
        while True:
            await asyncio.sleep(_LOOK_S)
            now = self._state()
            if now != last:
                last, since_s = now, clock_s()
            if clock_s() - since_s >= self._quiet_s and clock_s() - started_s >= least_s:
                return now
            if clock_s() - started_s > least_s + SETTLE_MAX_S:
                return now | {"unsettled": True}

    async def _do(self, step: Object) -> None:
        if "at" in step:  # a second of the minute
            await asyncio.sleep((step["at"] - time.time()) % 60)
            self._names.begin()
        if "create" in step:
            await create(self._api, step["create"], self._ns)
        if "command" in step:
            await self._command(**step["command"])
        if "finish" in step:
            text = f"{step['finish']['exitCode']} {time.time()}"
            for pod in self._placed(step["finish"]["pods"]):
                notes: Object = {"metadata": {"annotations": {EXIT: text}}}
                await self._api.patch(path("Pod", self._ns, pod), notes)
        if "delete" in step:
            kind, name = step["delete"].split("/", 1)
            body: Object = {"propagationPolicy": "Background"}
            await self._api.delete(path(kind, self._ns, self._real(kind, name)), body)
        for node in step.get("cordon") or step.get("uncordon") or ():
            await self._cordon(node, cordoned="cordon" in step)
        if "update" in step:
            kind, name = step["update"]["object"].split("/", 1)
            where = path(kind, self._ns, self._real(kind, name))
            where += step["update"].get("subresource", "")
            operations: Any = step["update"]["patch"]
            await self._api.patch(where, operations, JSON_PATCH)

    async def _cordon(self, node: str, *, cordoned: bool) -> None:
        await self._api.patch(path("Node", None, node), {"spec": {"unschedulable": cordoned}})

    async def _command(self, target: str, action: str) -> None:
        """As vcctl writes it."""
        kind, name = target.split("/")
        found = await self._api.get(path(kind, self._ns, name))
        reference = {
            "apiVersion": found["apiVersion"],
            "kind": kind,
            "name": name,
            "uid": found["metadata"]["uid"],
            "controller": True,
        }
        is_job = kind == "Job"
        metadata: Object = {"generateName": f"{name}-{action.lower()}-"}
        if is_job:
            metadata["ownerReferences"] = [reference]
        command: Object = {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": metadata,
            "action": action,
            "target": reference,
        }
        await self._api.create(path("Command", self._ns if is_job else "default"), command)

    def _placed(self, names: Sequence[str]) -> list[str]:
        """The names in the cluster of these pods; instead of one without a node, that of an equal
        pod with one: which of a task's pods are placed depends on the order in which they arrive.
        """
        found = [self._real("Pod", name) for name in names]
        pods = {str(pod["metadata"]["name"]): pod for pod in self._mine("Pod")}
        for index, name in enumerate(found):
            if name not in pods or pods[name]["spec"].get("nodeName"):
                continue
            equal = (
                other
                for other, pod in sorted(pods.items())
                if other not in found
                and pod["spec"].get("nodeName")
                and _task_of(pod) == _task_of(pods[name])
            )
            found[index] = next(equal, name)
        return found

    def _real(self, kind: str, name: str) -> str:
        """The name in the cluster of what the case calls so."""
        if kind in CLUSTER_WIDE:
            return name
        for found in self._mine(kind):
            if self._names(self._names.short(found["metadata"])) == name:
                return str(found["metadata"]["name"])
        return name

    async def _clean(self) -> None:
        for step in self._case["steps"]:
            for node in step.get("cordon", ()):
                await self._cordon(node, cordoned=False)
        owners = ("CronJob", "JobFlow", "Job", *OWNERS, "Pod", "PodGroup")
        for kind in owners:
            body: Object = {"propagationPolicy": "Background"}
            await self._ignoring_absence(path(kind, self._ns), body)
        await self._ignoring_absence(path("Namespace", None, self._ns))

        def none_left() -> bool:
            return not any(self._mine(kind) for kind in ("Pod", "Job", "PodGroup"))

        try:
            await eventually(none_left, timeout_s=_GONE_S, because="the case's objects are gone")
        finally:
            for found in reversed(self._own):
                if found["kind"] in CLUSTER_WIDE:
                    where = path(kind_of(found), None, found["metadata"]["name"])
                    await self._removed(where)

    async def _removed(self, where: str) -> None:
        """Delete what a rule may refuse to delete yet, such as a queue with children."""

        async def gone() -> bool:
            try:
                await self._api.delete(where)
            except ApiError as error:
                return error.status == 404
            return True

        await eventually(gone, timeout_s=_GONE_S, because=f"{where} can be deleted")

    async def _ignoring_absence(self, where: str, body: Object | None = None) -> None:
        try:
            await self._api.delete(where, body)
        except ApiError as error:
            if error.status != 404:
                raise


def _task_of(pod: Object) -> tuple[object, ...]:
    """What equal pods have in common."""
    labels = pod["metadata"].get("labels", {})
    return labels.get("volcano.sh/job-name"), labels.get("volcano.sh/task-spec")


async def create(api: RawClient, found: Object, namespace: str) -> None:
    """Create an object of a case; a queue is there with its state and parent afterwards."""
    made = copy.deepcopy(found)
    kind = kind_of(made)
    if kind == "Command":
        target = made["target"]
        there = await api.get(path(target["kind"], namespace, target["name"]))
        target["uid"] = there["metadata"]["uid"]
    try:
        await api.create(path(kind, namespace), made)
    except ApiError as error:
        if error.status != 409:
            raise
    if kind != "Queue":
        return
    where = path(kind, None, made["metadata"]["name"])

    async def opened() -> bool:
        queue = await api.get(where)
        return bool(queue.get("status", {}).get("state") and queue["spec"].get("parent"))

    # A queue that does not open shows that in the states.
    with contextlib.suppress(AssertionError):
        await eventually(opened, because=f"{where} has a state and a parent")


def _ranked(played: list[Recorded]) -> list[Recorded]:
    """Job versions depend on how many events arrive while pods end: each becomes its rank among
    those seen at the ends of steps.
    """
    seen: dict[str, list[int]] = {}
    for state, _ in played:
        for key, found in state.items():
            if not key.startswith("Job/"):
                continue
            ranks = seen.setdefault(key, [0])
            version = found.get("version", 0)
            if version not in ranks:
                ranks.append(version)
            if "version" in found:
                found["version"] = ranks.index(version)
        for key, found in state.items():
            match = re.match(r"job (\S+), .* version (\d+),", found.get("of", ""))
            if not key.startswith("Pod/") or match is None:
                continue
            ranks = seen.setdefault(f"Job/{match[1]}", [0])
            version = int(match[2])
            if version not in ranks:
                ranks.append(version)
            rank = f"version {ranks.index(version)},"
            found["of"] = found["of"].replace(f"version {version},", rank)
    return played
