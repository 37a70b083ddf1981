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
    owned_metadata,
    selector,
)
from shared.kinds.job import Job, TaskSpec
from shared.kinds.job_shape import hosts
from shared.kube.resources import CONFIGMAPS, NETWORK_POLICIES, SERVICES


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
        made = [
            Owned(resource=CONFIGMAPS, manifest=self._config_map(), follows=True),
            Owned(resource=SERVICES, manifest=self._service()),
        ]
        if not self._flags.switch("disable-network-policy"):
            made.append(Owned(resource=NETWORK_POLICIES, manifest=self._network_policy()))
        return made

    def _config_map(self) -> Manifest:
        data = {}
        for task in self._job.spec.tasks:
            names = hosts(self._job, task)
            file = task.name.replace("-", "_")
            data[f"{file}.host"] = "\n".join(names)
            data[f"VC_{_variable(task)}_HOSTS"] = ",".join(names)
            data[f"VC_{_variable(task)}_NUM"] = str(len(names))
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": owned_metadata(self._job, self._map),
            "data": data,
        }

    def _service(self) -> Manifest:
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": owned_metadata(self._job, self._job.metadata.name),
            "spec": {
                "clusterIP": "None",
                "selector": selector(self._job),
                "publishNotReadyAddresses": self._flags.switch("publish-not-ready-addresses"),
            },
        }

    def _network_policy(self) -> Manifest:
        ours = {"podSelector": {"matchLabels": selector(self._job)}}
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": owned_metadata(self._job, self._job.metadata.name),
            "spec": {**ours, "ingress": [{"from": [ours]}], "policyTypes": ["Ingress"]},
        }


def _variable(task: TaskSpec) -> str:
    return task.name.replace("-", "_").upper()


build: Final[type[JobPlugin]] = _Svc
