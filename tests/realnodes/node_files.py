"""The files of one node: settings of containerd, CNI, kubelet and kube-proxy; the start script."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.realnodes.building import NodePrograms
from tests.realnodes.images import PAUSE, Archive
from tests.realnodes.networks import GATEWAY, PODS, node_address, pod_range

SOCKET: Final = "/run/containerd/containerd.sock"
#: What a kubelet would write into the machine's own kernel settings: files are put over them.
_KERNEL: Final = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
#: Folders of the node, and the default paths at which its programs find them.
_FOLDERS: Final = {
    "kubelet": "/var/lib/kubelet",
    "containerd": "/var/lib/containerd",
    "cni": "/var/lib/cni",
    "network": "/etc/cni/net.d",
    "log": "/var/log",
    "volumes": "/media",
}
#: Where the node's local volumes are, as its pods' PersistentVolumes name it.
VOLUMES: Final = "/media"
#: Enough for the servers of NATS of all releases that tests install: none is used twice.
VOLUMES_PER_NODE: Final = 8
_CONTAINERD: Final = f"""
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  disable_apparmor = true
  # A root without CAP_SYS_RESOURCE cannot lower scores: runc fails without a usable message.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
"""


def write_node_files(folder: Path, name: str, number: int, cgroup: str, proxy: Path) -> None:
    """Write every setting of a node below its folder.

    Args:
        folder: The node's own.
        name: The Node's name.
        number: Its number in the network.
        cgroup: The cgroup that holds all pods of the node.
        proxy: The kubeconfig of kube-proxy.
    """
    for one in (*_FOLDERS, "kernel"):
        (folder / one).mkdir(parents=True, exist_ok=True)
    for one, value in _KERNEL.items():
        _kernel_file(folder, one).write_text(f"{value}\n")
    for volume in range(1, VOLUMES_PER_NODE + 1):
        (folder / "volumes" / str(volume)).mkdir(exist_ok=True)
    (folder / "resolv.conf").write_text("options ndots:0\n")
    (folder / "containerd.toml").write_text(_CONTAINERD)
    (folder / "network" / "10-pods.conflist").write_text(json.dumps(_network(number)))
    # JSON is YAML.
    kubelet, kube_proxy = _kubelet(folder, number, cgroup), _kube_proxy(name, number, proxy)
    (folder / "kubelet.yaml").write_text(json.dumps(kubelet))
    (folder / "kube-proxy.yaml").write_text(json.dumps(kube_proxy))


def start_script(
    folder: Path,
    name: str,
    number: int,
    kubeconfig: Path,
    programs: NodePrograms,
    archives: Sequence[Archive],
) -> str:
    """Return the shell script that becomes the node's first process; run it in namespaces of its
    own. It ends as soon as one of the node's programs ends."""
    quoted = shlex.quote(str(folder))
    lines = ["set -e", "mount --make-rprivate /", "mount -t proc proc /proc", f"hostname {name}"]
    lines += [f"mount --bind {_kernel_file(folder, one)} /proc/sys/{one}" for one in _KERNEL]
    for one, path in _FOLDERS.items():
        lines += [f"mkdir -p {path}", f"mount --bind {quoted}/{one} {path}"]
    lines += [
        "mount --make-shared /var/lib/kubelet",
        "mount -t tmpfs -o mode=755 tmpfs /run",
        "mkdir -p /run/lock /run/netns /run/systemd",
        "export PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        f"containerd --config {quoted}/containerd.toml >> {quoted}/containerd.log 2>&1 &",
        f"until [ -S {SOCKET} ]; do sleep 0.1; done",
    ]
    for archive in archives:
        imported = shlex.join(archive.import_command(address=SOCKET))
        lines.append(f"{imported} >> {quoted}/images.log 2>&1")
    kubelet = [
        str(programs.kubelet),
        f"--config={folder}/kubelet.yaml",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={name}",
        f"--node-ip={node_address(number)}",
        "--cert-dir=/var/lib/kubelet/pki",
    ]
    proxy = [str(programs.kube_proxy), f"--config={folder}/kube-proxy.yaml"]
    lines += [
        f"{shlex.join(kubelet)} >> {quoted}/kubelet.log 2>&1 &",
        f"{shlex.join(proxy)} >> {quoted}/kube-proxy.log 2>&1 &",
        "wait -n",
    ]
    return "\n".join(lines) + "\n"


def _kernel_file(folder: Path, name: str) -> Path:
    return folder / "kernel" / name.rpartition("/")[2]


def _network(number: int) -> dict[str, object]:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": pod_range(number)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    # Not a bridge: the rules of NetworkPolicies apply to packets that the node routes.
    cable = {"type": "ptp", "ipMasq": False, "ipam": addresses}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    plugins = [cable, ports]
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": plugins}


def _kubelet(folder: Path, number: int, cgroup: str) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node_address(number),
        "healthzBindAddress": "127.0.0.1",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "enforceNodeAllocatable": ["pods"],
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "clusterDNS": [GATEWAY],
        "clusterDomain": "cluster.local",
        "resolvConf": f"{folder}/resolv.conf",
        "failSwapOn": False,
        # The images are not to be had again.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%"},
    }


def _kube_proxy(name: str, number: int, kubeconfig: Path) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "bindAddress": node_address(number),
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": name,
        "clusterCIDR": PODS,
        # The table of connections is the machine's, not a namespace's.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }
