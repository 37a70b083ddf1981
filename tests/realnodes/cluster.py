"""A real cluster: a control plane, two nodes that run containers, volumes on their disks, and
NetworkPolicies in force."""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.controlplane.binaries import ensure_binaries
from tests.controlplane.go_builds import cache_root
from tests.controlplane.locks import exclusive
from tests.controlplane.processes import ComponentError
from tests.controlplane.programs import ensure_helm
from tests.controlplane.workspace import Workspace
from tests.realnodes.building import ensure_node_programs
from tests.realnodes.control import RealControlPlane
from tests.realnodes.enforcer import Enforcer
from tests.realnodes.images import Archive, ensure_images
from tests.realnodes.networks import make_networks, node_network, remove_networks
from tests.realnodes.node import Node, node_name
from tests.realnodes.node_files import VOLUMES, VOLUMES_PER_NODE
from tests.realnodes.releases import REPOSITORY, Release, present_release

NODES: Final = (1, 2)
_READY_S: Final = 240.0
_POLL_S: Final = 0.5

Object = dict[str, Any]


class RealCluster:
    """What tests do with it.

    Attributes:
        release: The release of the checkout's commit, whose image the nodes have.
    """

    def __init__(
        self,
        control: RealControlPlane,
        nodes: dict[str, Node],
        enforcer: Enforcer,
        helm: Path,
        release: Release,
    ) -> None:
        self.control = control
        self.nodes = nodes
        self.enforcer = enforcer
        self.release = release
        self._helm = helm

    def load(self, release: Release) -> None:
        """Give all nodes the image of a further release. Raises ImageError."""
        for node in self.nodes.values():
            node.load(Archive(release.image, REPOSITORY))

    def helm(self, *arguments: str) -> str:
        """Run Helm as administrator. Raises ToolError."""
        return self.control.run(str(self._helm), *arguments)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as administrator. Raises ToolError."""
        return self.control.kubectl(*arguments, stdin=stdin)

    def listed(self, kind: str, *arguments: str) -> list[Object]:
        """The objects of a kind, in all namespaces unless the arguments name one."""
        scope = () if any("namespace" in one for one in arguments) else ("--all-namespaces",)
        return list(
            json.loads(self.kubectl("get", kind, *scope, *arguments, "--output=json"))["items"]
        )

    def apply(self, *objects: Object) -> None:
        """Create or change objects."""
        body = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "--filename=-", stdin=json.dumps(body))

    def ready_nodes(self) -> set[str]:
        """The nodes whose kubelet says so."""
        return {one["metadata"]["name"] for one in self.listed("nodes") if is_ready(one)}

    def wait_for_nodes(self, names: Sequence[str]) -> None:
        """Return when all of them are Ready.

        Raises:
            ComponentError: One was not in time; with the end of its logs.
        """
        deadline_s = time.monotonic() + _READY_S
        while absent := set(names) - self.ready_nodes():
            if time.monotonic() > deadline_s:
                logs = "\n".join(self.nodes[name].log_tail() for name in sorted(absent))
                raise ComponentError(f"not Ready: {', '.join(sorted(absent))}\n{logs}")
            time.sleep(_POLL_S)


def is_ready(thing: Object) -> bool:
    """Whether a pod's or a node's condition Ready is true."""
    conditions = thing["status"].get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


@contextmanager
def real_cluster() -> Iterator[RealCluster]:
    """Start everything, and leave nothing. One at a time on a machine: others wait for it.

    Raises:
        AssertionError: `make release` failed.
        BinariesError, ImageError, ComponentError, NetworkError: It could not be started.
    """
    binaries, programs, helm = ensure_binaries(), ensure_node_programs(), ensure_helm()
    release = present_release()
    archives = (*ensure_images(programs.contained), Archive(release.image, REPOSITORY))
    with exclusive(cache_root() / "realnodes" / "cluster.lock"):
        # Layers of containers are on a disk, the API server's data in memory.
        folder = Path(tempfile.mkdtemp(prefix="tutti-realnodes-", dir="/var/tmp"))
        memory = Workspace()
        make_networks(NODES)
        control = RealControlPlane(folder / "control", memory.path / "etcd", binaries)
        proxy = control.kubeconfig("system:kube-proxy")
        networks = [node_network(number) for number in NODES]
        enforcer = Enforcer(control.admin_kubeconfig, networks, folder / "enforcer.log")
        nodes: dict[str, Node] = {}
        try:
            control.start()
            enforcer.start()
            for number in NODES:
                name = node_name(number)
                kubelet = control.kubeconfig(f"system:node:{name}", ("system:nodes",))
                nodes[name] = Node(number, folder / name, (kubelet, proxy), programs, archives)
                nodes[name].start()
            cluster = RealCluster(control, nodes, enforcer, helm, release)
            _furnish(cluster)
            cluster.wait_for_nodes(list(nodes))
            yield cluster
        finally:
            for node in nodes.values():
                node.stop()
            enforcer.stop()
            control.stop()
            remove_networks(NODES)
            memory.close()
            shutil.rmtree(folder, ignore_errors=True)


def _furnish(cluster: RealCluster) -> None:
    """What a cluster's provisioner would make: a default class, and volumes on the nodes' disks."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    storage: Object = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local", "annotations": default},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volumes = [_volume(name, n) for name in cluster.nodes for n in range(1, VOLUMES_PER_NODE + 1)]
    cluster.apply(storage, *volumes)


def _volume(node: str, number: int) -> Object:
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{node}-{number}"},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "local",
            "local": {"path": f"{VOLUMES}/{number}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
        },
    }
