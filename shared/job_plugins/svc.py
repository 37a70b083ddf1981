"""Plugin svc: gives the pods of a job the host names of all its pods, a headless Service that
resolves them, and a NetworkPolicy that allows traffic between them.

Flags: --publish-not-ready-addresses, --disable-network-policy, --inject-hosts-env.
"""

from collections.abc import Sequence
from typing import Final

from shared.job_plugins.plugin import (
    Flags,
    JobPlugin,
    Manifest,
    Owned,
    add_env,
    add_volume,
    containers,
    owned_by,
    selector,
)
from shared.kinds.job import Job, TaskSpec
from shared.kinds.job_shape import hosts
from shared.kube.resources import CONFIGMAPS, NETWORK_POLICIES, SERVICES, Resource


class _Svc:
    def __init__(self, arguments: Sequence[str], job: Job) -> None:
        self._job = job
        self._flags = Flags(
            arguments,
            publish_not_ready_addresses=False,
            disable_network_policy=False,
            inject_hosts_env=True,
        )
        self._map = f"{job.metadata.name}-svc"

    def change_pod(self, pod: Manifest, _task: TaskSpec, _index: int) -> None:
        spec = pod["spec"]
        spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
        spec["subdomain"] = spec.get("subdomain") or self._job.metadata.name
        if self._flags.switch("inject-hosts-env"):
            entries = [
                {"name": key, "valueFrom": {"configMapKeyRef": {"name": self._map, "key": key}}}
                for task in self._job.spec.tasks
                for key in (f"VC_{_variable(task)}_HOSTS", f"VC_{_variable(task)}_NUM")
            ]
            for container in containers(pod, init=True):
                add_env(container, *entries)
        volume = {"name": self._map, "configMap": {"name": self._map}}
        add_volume(pod, volume, {"name": self._map, "mountPath": "/etc/volcano"})

    def objects(self) -> Sequence[Owned]:
        name, labels = self._job.metadata.name, selector(self._job)
        service = {
            "clusterIP": "None",
            "selector": labels,
            "publishNotReadyAddresses": self._flags.switch("publish-not-ready-addresses"),
        }
        made = [
            self._owned(CONFIGMAPS, self._map, {"data": self._data()}, follows=True),
            self._owned(SERVICES, name, {"spec": service}),
        ]
        if not self._flags.switch("disable-network-policy"):
            ours = {"podSelector": {"matchLabels": labels}}
            policy = {**ours, "ingress": [{"from": [ours]}], "policyTypes": ["Ingress"]}
            made.append(self._owned(NETWORK_POLICIES, name, {"spec": policy}))
        return made

    def _owned(
        self, resource: Resource, name: str, content: Manifest, *, follows: bool = False
    ) -> Owned:
        manifest = owned_by(self._job, resource, name, content)
        return Owned(resource=resource, manifest=manifest, follows=follows)

    def _data(self) -> dict[str, str]:
        data: dict[str, str] = {}
        for task in self._job.spec.tasks:
            names = hosts(self._job, task)
            file = task.name.replace("-", "_")
            data[f"{file}.host"] = "\n".join(names)
            data[f"VC_{_variable(task)}_HOSTS"] = ",".join(names)
            data[f"VC_{_variable(task)}_NUM"] = str(len(names))
        return data


def _variable(task: TaskSpec) -> str:
    return task.name.replace("-", "_").upper()


build: Final[type[JobPlugin]] = _Svc
