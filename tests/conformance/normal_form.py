"""What a recorded state says of an object, and of the names that a run gives by itself.

A UID becomes `<uid Kind/name>`, the namespace `<ns>`, a node `<node>`, a time `<time>`, a random
end of a name `<1>`; the README of the recordings explains each.
"""

import base64
import re
import time
from typing import Any, Final

from tests.conformance.recordings import Object

PREFIX: Final = "volcano.sh/"
#: Annotations that Tutti adds for itself; programs made for Volcano do not read them.
OURS: Final = "tutti.dev/"
_UID: Final = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
_TIME: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000 UTC)?( m=[+-][\d.]+)?"


def plain_text(text: str) -> str:
    """A message without what differs between runs."""
    text = re.sub(r"\[([A-Za-z*]+(?: [A-Za-z*]+)+)\]", _sorted_words, text)
    text = re.sub(r"\[(requestBody\..*)\]$", _sorted_fields, text)
    text = re.sub(r"(child queues: )([a-z0-9, -]+)", _sorted_names, text)
    text = re.sub(_TIME, "<time>", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "<pointer>", text)
    return re.sub(r"(?<![\w-])worker-\d\b", "<node>", text)


def _sorted_words(match: re.Match[str]) -> str:
    return "[" + " ".join(sorted(match[1].split())) + "]"


def _sorted_fields(match: re.Match[str]) -> str:
    return "[" + ", ".join(sorted(re.split(r", (?=requestBody\.)", match[1]))) + "]"


def _sorted_names(match: re.Match[str]) -> str:
    return match[1] + ", ".join(sorted(match[2].split(", ")))


class Names:
    """Replaces UIDs and random parts of names in one scenario."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._uids: dict[str, str] = {}
        self.random: dict[str, str] = {}
        self._first_minute = int(time.time() / 60)

    def begin(self) -> None:
        """Minutes are counted from now on."""
        self._first_minute = int(time.time() / 60)

    def learn(self, kind: str, found: Object) -> None:
        """Remember an object's UID."""
        metadata = found["metadata"]
        short = kind.rpartition("/")[2]
        self._uids[metadata["uid"]] = f"<uid {short}/{self.short(metadata)}>"

    def knows(self, uid: object) -> bool:
        """Whether an object of that UID was seen."""
        return uid in self._uids

    def short(self, metadata: Object) -> str:
        """An object's name; random ends are numbered in order of appearance."""
        name, stem = str(metadata["name"]), metadata.get("generateName")
        if not stem or not name.startswith(stem):
            return name
        if name not in self.random:
            count = sum(known.startswith(f"{stem}<") for known in self.random.values())
            self.random[name] = f"{stem}<{count + 1}>"
        return self.random[name]

    def __call__(self, value: Any) -> Any:
        """The value with every name replaced."""
        if isinstance(value, dict):
            return {self(key): self(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self(item) for item in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for name, short in (self.random | self._uids).items():
            text = text.replace(name, short)
        text = re.sub(_UID, "<uid>", text).replace(self._namespace, "<ns>")
        text = re.sub(r"^([a-z0-9-]+?)-(?=[a-z0-9]*\d)[a-z0-9]{12}$", r"\1-<random>", text)
        text = re.sub(r"-pvc-[a-z0-9]{12}\b", "-pvc-<random>", text)
        return plain_text(re.sub(r"(?<=-)[23]\d{7}\b", self._minute, text))

    def _minute(self, match: re.Match[str]) -> str:
        """Jobs of CronJobs are named after theirs."""
        passed = int(match[0]) - self._first_minute
        return f"<minute {passed}>" if -1 <= passed < 60 else match[0]


def picked(found: Object, *keys: str) -> Object:
    """These members, where they say something."""
    return {key: found[key] for key in keys if found.get(key) not in (None, "", [], {}, 0)}


def brief(name: str, pod: Object) -> Object:
    """A pod's normal form; labels, annotations and owner that every pod of a Job has become one
    line `of`.
    """
    labels, notes = pod.get("labels", {}), pod.get("annotations", {})
    job, task, index, queue = (
        labels.get(PREFIX + key) for key in ("job-name", "task-spec", "task-index", "queue-name")
    )
    version, retry = notes.get(f"{PREFIX}job-version"), notes.get(f"{PREFIX}job-retry-count")
    both = {
        f"{PREFIX}job-name": job,
        f"{PREFIX}task-spec": task,
        f"{PREFIX}task-index": index,
        f"{PREFIX}queue-name": queue,
    }
    usual_labels = {**both, f"{PREFIX}job-namespace": "<ns>"}
    usual_notes = {
        **both,
        f"{PREFIX}job-version": version,
        f"{PREFIX}job-retry-count": retry,
        f"{PREFIX}template-uid": f"{job}-{task}",
        "scheduling.k8s.io/group-name": f"{job}-<uid Job/{job}>",
    }
    usual = (
        name == f"{job}-{task}-{index}"
        and usual_labels.items() <= labels.items()
        and usual_notes.items() <= notes.items()
        and pod.get("owner") == [f"Job/{job} controller blockOwnerDeletion"]
    )
    if not usual:
        return pod
    rest = {
        "labels": {key: value for key, value in labels.items() if key not in usual_labels},
        "annotations": {key: value for key, value in notes.items() if key not in usual_notes},
    }
    of = f"job {job}, task {task}, index {index}, queue {queue}, version {version}, retry {retry}"
    left = {k: v for k, v in pod.items() if k not in ("owner", "labels", "annotations")}
    return {"of": of, **{key: value for key, value in rest.items() if value}, **left}


def shown(kind: str, found: Object) -> Object:
    """What a state says of an object."""
    return _SHOWN[kind](found)


def _owner(found: Object) -> Object:
    owners = [
        f"{one['kind']}/{one['name']}"
        + "".join(f" {flag}" for flag in ("controller", "blockOwnerDeletion") if one.get(flag))
        for one in found["metadata"].get("ownerReferences") or ()
    ]
    return {"owner": owners} if owners else {}


def _meta(found: Object) -> Object:
    metadata = found["metadata"]
    notes = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if not key.startswith(OURS)
    }
    return {
        **_owner(found),
        **picked(metadata, "labels"),
        **({"annotations": notes} if notes else {}),
    }


def _by(key: str, items: list[Object]) -> list[Object]:
    return sorted(items, key=lambda item: str(item.get(key)))


def _deleting(found: Object) -> Object:
    return {"deleting": True} if found["metadata"].get("deletionTimestamp") else {}


def _status(found: Object) -> Object:
    return found.get("status") or {}


def _job(found: Object) -> Object:
    status, spec = _status(found), found.get("spec", {})
    state = status.get("state", {})
    counted = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
    kept = ("version", "retryCount", "taskStatusCount", "controlledResources")
    return {
        **_meta(found),
        "phase": state.get("phase"),
        **picked(state, "reason", "message"),
        **picked(status, "minAvailable", *counted, *kept),
        **picked(spec, "volumes"),
        "conditions": [one["status"] for one in status.get("conditions") or ()],
        **_deleting(found),
    }


def _pod_group(found: Object) -> Object:
    status = _status(found)
    conditions = [
        {key: one[key] for key in ("type", "status", "reason", "message") if one.get(key)}
        for one in _by("type", status.get("conditions") or [])
    ]
    return {
        **_meta(found),
        "spec": found.get("spec", {}),
        "phase": status.get("phase"),
        **picked(status, "running", "succeeded", "failed"),
        "conditions": conditions,
    }


def _container(found: Object) -> Object:
    result = {"name": found["name"]}
    command = found.get("command") or ["sleep"]
    if command[0] != "sleep":
        result["command"] = ["<script>" if "\n" in word else word for word in command]
    result |= picked(found, "args")
    if found.get("env"):
        result["env"] = _by("name", found["env"])
    if found.get("ports"):
        result["ports"] = _by("containerPort", found["ports"])
    mounts = [
        one for one in found.get("volumeMounts") or () if "serviceaccount" not in one["mountPath"]
    ]
    return result | ({"mounts": _by("mountPath", mounts)} if mounts else {})


def _pod(found: Object) -> Object:
    metadata, spec, status = found["metadata"], found["spec"], _status(found)
    volumes = [v for v in spec.get("volumes") or () if not v["name"].startswith("kube-api-access")]
    notes = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if not key.startswith(("fakekubelet/", OURS))
    }
    containers = [_container(one) for one in spec["containers"]]
    result = {
        **_owner(found),
        **picked(metadata, "labels"),
        **({"annotations": notes} if notes else {}),
        **picked(spec, "hostname", "subdomain", "priorityClassName", "priority"),
        **picked(spec, "nodeSelector", "affinity", "schedulingGates"),
    }
    if spec.get("schedulerName") != "volcano":
        result["schedulerName"] = spec.get("schedulerName")
    if volumes:
        result["volumes"] = _by("name", volumes)
    if spec.get("initContainers"):
        result["initContainers"] = [_container(one) for one in spec["initContainers"]]
    if any(len(one) > 1 for one in containers):
        result["containers"] = containers
    return {**result, **_pod_status(spec, status), **_deleting(found)}


def _pod_status(spec: Object, status: Object) -> Object:
    bound = bool(spec.get("nodeName"))
    waiting = [
        picked(one, "reason", "message")
        for one in status.get("conditions") or ()
        if one["type"] == "PodScheduled" and one["status"] == "False"
    ]
    restarts = sum(one.get("restartCount", 0) for one in status.get("containerStatuses") or ())
    return {
        "phase": status.get("phase"),
        "node": bound,
        **({"scheduled": waiting[0]} if waiting and not bound else {}),
        **picked(status, "nominatedNodeName"),
        **({"restarts": restarts} if restarts else {}),
    }


def _service(found: Object) -> Object:
    spec = found.get("spec", {})
    kept = picked(spec, "type", "selector", "ports", "publishNotReadyAddresses")
    return {**_meta(found), **kept, "headless": spec.get("clusterIP") == "None"}


def _secret(found: Object) -> Object:
    data = {
        key: base64.b64decode(value).decode(errors="replace")
        for key, value in sorted(found.get("data", {}).items())
    }
    shown = {key: value if key == "config" else _kind_of_key(value) for key, value in data.items()}
    return {**_meta(found), "type": found.get("type"), "data": shown}


def _kind_of_key(text: str) -> str:
    first = text.strip().split("\n")[0]
    return "<" + re.sub(r" KEY.*|-+BEGIN | [A-Za-z0-9+/=]{40,}.*", "", first) + ">"


def _claim(found: Object) -> Object:
    spec = {key: value for key, value in found.get("spec", {}).items() if key != "volumeName"}
    labels = picked(found["metadata"], "labels")
    return {**_owner(found), **labels, "spec": spec, "phase": _status(found).get("phase")}


def _queue(found: Object) -> Object:
    status = {key: value for key, value in _status(found).items() if key != "reservation"}
    notes = picked(found["metadata"], "annotations")
    return {**notes, "spec": found.get("spec", {}), "status": status}


def _job_flow(found: Object) -> Object:
    status = _status(found)
    listed = ("pendingJobs", "runningJobs", "failedJobs", "completedJobs", "terminatedJobs")
    lists = picked(status, *listed, "unKnowJobs")
    jobs = [
        {
            "name": job["name"],
            **picked(job, "state", "restartCount"),
            "histories": [one["state"] for one in job.get("runningHistories") or ()],
        }
        for job in _by("name", status.get("jobStatusList") or [])
    ]
    conditions = {
        key: picked(value, "phase", "taskStatusCount")
        for key, value in sorted((status.get("conditions") or {}).items())
    }
    return {
        "phase": status.get("state", {}).get("phase"),
        **{key: sorted(value) for key, value in lists.items()},
        "jobs": jobs,
        "conditions": conditions,
    }


def _job_template(found: Object) -> Object:
    return {"jobDependsOnList": sorted(_status(found).get("jobDependsOnList") or [])}


def _cron_job(found: Object) -> Object:
    status = _status(found)
    return {
        **picked(found.get("spec", {}), "suspend"),
        "active": sorted(one["name"] for one in status.get("active") or ()),
        "lastScheduleTime": "lastScheduleTime" in status,
        "lastSuccessfulTime": "lastSuccessfulTime" in status,
    }


_SHOWN: Final = {
    "Job": _job,
    "PodGroup": _pod_group,
    "Pod": _pod,
    "Service": _service,
    "ConfigMap": lambda found: {**_meta(found), "data": found.get("data", {})},
    "Secret": _secret,
    "NetworkPolicy": lambda found: {**_meta(found), "spec": found.get("spec", {})},
    "PersistentVolumeClaim": _claim,
    "Command": lambda found: {**_owner(found), **picked(found, "action", "reason", "message")},
    "JobFlow": _job_flow,
    "JobTemplate": _job_template,
    "CronJob": _cron_job,
    "Queue": _queue,
}
#: The kinds that a state shows, in its order.
KINDS_SHOWN: Final = tuple(_SHOWN)
