"""The command line of each component: pure functions of the options and of where things are."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.controlplane.binaries import Binaries
from tests.controlplane.certificates import Authority, service_account_key_pem

ETCD = "etcd"
APISERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
# The name in the certificate with which the API server connects to aggregated APIs.
FRONT_PROXY = "front-proxy-client"

# The controllers that workloads need. Not the node's: without kubelets they would drain every node.
WORKLOAD_CONTROLLERS = (
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "ephemeral-volume-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "replicaset-controller",
    "resourceclaim-controller",
    "resourcequota-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
)
# These wait for controllers that do not run by default: pods would be refused for want of a service
# account, and every new node would keep the taint "not ready".
WAITING_ADMISSION_PLUGINS = ("ServiceAccount", "TaintNodesByCondition")


@dataclass(frozen=True, kw_only=True)
class ControlPlaneOptions:
    """What to start and how; ``*_args`` come last on the command line and so win over ours."""

    controllers: Sequence[str] = ()
    """Controllers to run in kube-controller-manager; none means it is not started."""

    scheduler: bool = False
    """Whether to start kube-scheduler."""

    disable_admission_plugins: Sequence[str] = WAITING_ADMISSION_PLUGINS
    etcd_args: Sequence[str] = ()
    apiserver_args: Sequence[str] = ()
    controller_manager_args: Sequence[str] = ()
    scheduler_args: Sequence[str] = ()

    requests_inflight_max: int = 2000
    mutating_requests_inflight_max: int = 1000
    """Far above the defaults (400 and 200): a burst is to be slow rather than refused with 429."""

    start_timeout_s: float = 180.0
    """Per component; a loaded machine needs far more than the usual two seconds."""

    parent_dir: Path | None = None
    """Where to make the working folder; by default in shared memory."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """The fixed names inside a control plane's folder."""

    root: Path
    etcd_data: Path = field(init=False)
    ca: Path = field(init=False)
    apiserver_cert: Path = field(init=False)
    apiserver_key: Path = field(init=False)
    service_account_key: Path = field(init=False)
    front_proxy_ca: Path = field(init=False)
    front_proxy_cert: Path = field(init=False)
    front_proxy_key: Path = field(init=False)
    admin_kubeconfig: Path = field(init=False)

    def __post_init__(self) -> None:
        names = {
            "etcd_data": "etcd",
            "ca": "ca.crt",
            "apiserver_cert": "apiserver.crt",
            "apiserver_key": "apiserver.key",
            "service_account_key": "service-account.key",
            "front_proxy_ca": "front-proxy-ca.crt",
            "front_proxy_cert": "front-proxy-client.crt",
            "front_proxy_key": "front-proxy-client.key",
            "admin_kubeconfig": "admin.kubeconfig",
        }
        for attribute, name in names.items():
            object.__setattr__(self, attribute, self.root / name)

    def log(self, component: str) -> Path:
        """Return the log file of a component."""
        return self.root / f"{component}.log"


def write_certificates(files: Files, authority: Authority, names: Sequence[str]) -> None:
    """Write the keys and certificates that the API server's command names; users reach it by these
    `names`. API services know the API server by an authority of its own, the front proxy's.
    """
    files.ca.write_bytes(authority.certificate_pem)
    pair = authority.server(names)
    files.apiserver_cert.write_bytes(pair.certificate_pem)
    files.apiserver_key.write_bytes(pair.key_pem)
    files.service_account_key.write_bytes(service_account_key_pem())
    front_proxy = Authority("front-proxy-ca")
    files.front_proxy_ca.write_bytes(front_proxy.certificate_pem)
    pair = front_proxy.client(FRONT_PROXY)
    files.front_proxy_cert.write_bytes(pair.certificate_pem)
    files.front_proxy_key.write_bytes(pair.key_pem)


def etcd_command(
    binaries: Binaries,
    files: Files,
    options: ControlPlaneOptions,
    *,
    client_port: int,
    peer_port: int,
) -> list[str]:
    """One member, without a single fsync: its data need not survive the machine."""
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    return [
        str(binaries.etcd),
        f"--data-dir={files.etcd_data}",
        "--name=default",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--socket-reuse-port=true",
        "--unsafe-no-fsync=true",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
        *options.etcd_args,
    ]


def apiserver_command(
    binaries: Binaries,
    files: Files,
    options: ControlPlaneOptions,
    *,
    port: int,
    etcd_port: int,
) -> list[str]:
    """TLS, client certificates, service accounts' tokens and RBAC, as in a real cluster."""
    return [
        str(binaries.kube_apiserver),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--permit-port-sharing=true",
        f"--tls-cert-file={files.apiserver_cert}",
        f"--tls-private-key-file={files.apiserver_key}",
        f"--client-ca-file={files.ca}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files.service_account_key}",
        f"--service-account-signing-key-file={files.service_account_key}",
        # Aggregated APIs, as kubeadm sets them up.
        f"--requestheader-client-ca-file={files.front_proxy_ca}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={files.front_proxy_cert}",
        f"--proxy-client-key-file={files.front_proxy_key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        # A loopback address may not be an endpoint, and no client finds the server by its Service.
        "--endpoint-reconciler-type=none",
        f"--disable-admission-plugins={','.join(options.disable_admission_plugins)}",
        f"--max-requests-inflight={options.requests_inflight_max}",
        f"--max-mutating-requests-inflight={options.mutating_requests_inflight_max}",
        # One worker, the default, takes 15 s to delete 5,000 pods (measured).
        "--delete-collection-workers=16",
        *options.apiserver_args,
    ]


def controller_manager_command(
    binaries: Binaries, files: Files, options: ControlPlaneOptions, *, port: int
) -> list[str]:
    """Only the chosen controllers, as administrator, without an election."""
    return [
        str(binaries.kube_controller_manager),
        f"--controllers={','.join(options.controllers)}",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--root-ca-file={files.ca}",
        *_follower_flags(files, port),
        *options.controller_manager_args,
    ]


def scheduler_command(
    binaries: Binaries, files: Files, options: ControlPlaneOptions, *, port: int
) -> list[str]:
    """The default scheduler, as administrator, without an election."""
    return [
        str(binaries.kube_scheduler),
        *_follower_flags(files, port),
        *options.scheduler_args,
    ]


def _follower_flags(files: Files, port: int) -> list[str]:
    return [
        f"--kubeconfig={files.admin_kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--permit-port-sharing=true",
        "--leader-elect=false",
    ]
