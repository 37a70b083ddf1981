"""The options of `tutti up`, checked."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from shared.dialects.discovery import scheduler_names

#: In the order of starting: all services wait for the watcher's list. They stop in the reverse
#: order, so that writers end after the services that request their writes.
SERVICES: Final = ("watcher", "gang-planner", "binder", "controller", "admission-webhook")

#: Active and standby planner: the standby answers questions and takes over in about a second.
#: Two binders: when one hangs or dies, the other has its decisions after the ack wait of 2 s.
_REPLICAS: Final[Mapping[str, int]] = {
    "watcher": 1,
    "gang-planner": 2,
    "binder": 2,
    "controller": 1,
    "admission-webhook": 1,
}

#: Services of an observation: none of them can write to the cluster.
OBSERVING: Final = ("watcher", "gang-planner", "observer")
#: Folder in the data folder: an observation has a NATS of its own, so that its decisions are never
#: carried out.
OBSERVED_DIR: Final = "observe"

#: More replicas than this on one machine is a typing error.
REPLICAS_MAX: Final = 16

SCHEDULER_NAMES: Final = scheduler_names()


class OptionError(ValueError):
    """A flag breaks its rule; the message names both."""


class UpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `tutti up`.

    Attributes:
        kubeconfig: Path of a file; "" for kubectl's default locations, or a pod's service account.
        context: Context in it; "" for the current one.
        scheduler_names: Scheduler names to serve.
        nats_url: NATS to use; "" to start one.
        data_dir: Logs, NATS's store, certificates; None for a folder per cluster.
        scheduler_conf: Path of a volcano-scheduler.conf; "" for the built-in configuration.
        admission_conf: Path of Volcano's admission configuration file; "" for none.
        webhook: Whether the admission webhook runs.
        webhook_port: Its port on 127.0.0.1; 0 for any free one.
        install_crds: Whether to create or update the CRDs first.
        kube_batch_crds: Whether to create the CRDs of kube-batch's kinds too.
        replicas: Processes per service, where it differs from the default.
        otlp_endpoint: OTLP/HTTP endpoint for traces; "" for none.
        trace_ratio: Share of traces that is exported.
        take_over: Whether to start although another scheduler is active.
        verbose: Services log to standard error, as text.
        ready_file: File for ports and pids, written once all services are ready; None for none.
        observe: Whether to write nothing to the cluster, and to report decisions only.
        report: File for the report of an observation; None for none.
    """

    kubeconfig: str = ""
    context: str = ""
    scheduler_names: tuple[str, ...] = SCHEDULER_NAMES
    nats_url: str = ""
    data_dir: Path | None = None
    scheduler_conf: str = ""
    admission_conf: str = ""
    webhook: bool = True
    webhook_port: int = 0
    install_crds: bool = False
    kube_batch_crds: bool = False
    replicas: Mapping[str, int] = {}
    otlp_endpoint: str = ""
    trace_ratio: float = 1.0
    take_over: bool = False
    verbose: bool = False
    ready_file: Path | None = None
    observe: bool = False
    report: Path | None = None

    @property
    def services(self) -> tuple[str, ...]:
        """The services that run, in the order of starting."""
        return OBSERVING if self.observe else SERVICES

    def count(self, service: str) -> int:
        if service not in self.services or (service == "admission-webhook" and not self.webhook):
            return 0
        if service == "observer":
            return 1
        return self.replicas.get(service, _REPLICAS[service])


def read_replicas(given: tuple[str, ...]) -> dict[str, int]:
    """Read `SERVICE=N` of each `--replicas`.

    Raises:
        OptionError: There is no such service, or N is not a number in 0..REPLICAS_MAX.
    """
    replicas: dict[str, int] = {}
    for item in given:
        service, equals, number = item.partition("=")
        if not equals:
            raise OptionError(f"--replicas {item}: must be SERVICE=N")
        if service not in SERVICES:
            raise OptionError(f"--replicas {item}: no service {service!r}: {', '.join(SERVICES)}")
        if not (number.isascii() and number.isdigit() and int(number) <= REPLICAS_MAX):
            raise OptionError(f"--replicas {item}: N must be a number from 0 to {REPLICAS_MAX}")
        replicas[service] = int(number)
    return replicas


def check_observing(options: UpOptions) -> None:
    """Refuse flags that an observation cannot have.

    Raises:
        OptionError: A flag would write to the cluster, or is valid only with `--observe`.
    """
    if options.kube_batch_crds and not options.install_crds:
        raise OptionError("--kube-batch-crds: only with --install-crds")
    if not options.observe:
        if options.report is not None:
            raise OptionError("--report: only with --observe")
        return
    refused = {
        "--nats": bool(options.nats_url),
        "--install-crds": options.install_crds,
        "--take-over": options.take_over,
        "--admission-conf": bool(options.admission_conf),
        "--webhook-port": bool(options.webhook_port),
        **{f"--replicas {name}": name not in OBSERVING for name in options.replicas},
    }
    for flag, given in refused.items():
        if given:
            raise OptionError(
                f"{flag}: not with --observe, which writes nothing and serves no requests"
            )


def default_data_dir(server: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder for one cluster under the user's data home.

    Args:
        server: URL of the API server.
        environ: Environment with `XDG_DATA_HOME`.
    """
    home = environ.get("XDG_DATA_HOME") or str(Path("~/.local/share").expanduser())
    url = urlsplit(server)
    place = f"{url.netloc.rpartition('@')[2]}{url.path.rstrip('/')}"
    name = "".join(c if c.isascii() and (c.isalnum() or c in ".-") else "-" for c in place)
    return Path(home) / "tutti" / (name or "cluster")
