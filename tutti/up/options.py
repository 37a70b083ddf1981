"""The options of `tutti up`, checked."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from shared.dialects.discovery import scheduler_names
from shared.runtime.settings import (
    JAEGER_URL,
    JAEGER_URL_RULE,
    OTLP_ENDPOINT,
    OTLP_ENDPOINT_RULE,
)

#: Processes of each service. Active and standby planner: the standby answers questions and takes
#: over in about a second. Two binders: when one hangs or dies, the other has its decisions after
#: the ack wait of 2 s.
_REPLICAS: Final[Mapping[str, int]] = {
    "watcher": 1,
    "gang-planner": 2,
    "binder": 2,
    "controller": 1,
    "admission-webhook": 1,
    "api": 1,
}
#: In the order of starting: all services wait for the watcher's list. They stop in the reverse
#: order, so that writers end after the services that request their writes.
SERVICES: Final = tuple(_REPLICAS)

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
    """The flags of `tutti up`; their help describes them (`tutti.up.command`).

    An empty text, or None, stands for the default: kubectl's files and context, a NATS of our own,
    a folder per cluster, the built-in configuration; no traces, no ready file, no report.
    """

    kubeconfig: str = ""
    context: str = ""
    scheduler_names: tuple[str, ...] = SCHEDULER_NAMES
    nats_url: str = ""
    data_dir: Path | None = None
    scheduler_conf: str = ""
    admission_conf: str = ""
    webhook: bool = True
    webhook_port: int = 0  # 0: any free port
    api: bool | None = None  # None: if the API server is on this machine
    api_port: int = 0  # 0: any free port
    install_crds: bool = False
    kube_batch_crds: bool = False
    replicas: Mapping[str, int] = {}  # where they differ from the default
    otlp_endpoint: str = ""
    trace_ratio: float = 1.0
    jaeger_url: str = ""
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
        switched_off = {"admission-webhook": not self.webhook, "api": self.api is False}
        if service not in self.services or switched_off.get(service, False):
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


def check_addresses(options: UpOptions) -> None:
    """Refuse addresses that the services would refuse when they start.

    Raises:
        OptionError: An address breaks its rule.
    """
    for flag, given, pattern, rule in (
        ("--otlp", options.otlp_endpoint, OTLP_ENDPOINT, OTLP_ENDPOINT_RULE),
        ("--jaeger", options.jaeger_url, JAEGER_URL, JAEGER_URL_RULE),
    ):
        if not re.match(pattern, given):
            raise OptionError(f"{flag}: {rule}")


def check_combination(options: UpOptions) -> None:
    """Refuse flags that are not valid together.

    Raises:
        OptionError: A flag has no effect without another one, or an observation cannot have it.
    """
    needed = {
        "--kube-batch-crds": (options.kube_batch_crds, "--install-crds", options.install_crds),
        "--report": (options.report is not None, "--observe", options.observe),
    }
    for flag, (given, other, has_other) in needed.items():
        if given and not has_other:
            raise OptionError(f"{flag}: only with {other}")
    of_api = {
        "--api-port": bool(options.api_port),
        "--jaeger": bool(options.jaeger_url),
        "--replicas api": bool(options.replicas.get("api")),
    }
    for flag, given in of_api.items():
        if given and options.api is False:
            raise OptionError(f"{flag}: not with --no-api")
    if options.observe:
        _check_observing(options)


def _check_observing(options: UpOptions) -> None:
    refused = {
        "--api": bool(options.api),
        "--nats": bool(options.nats_url),
        "--install-crds": options.install_crds,
        "--take-over": options.take_over,
        "--admission-conf": bool(options.admission_conf),
        "--webhook-port": bool(options.webhook_port),
        "--api-port": bool(options.api_port),
        "--jaeger": bool(options.jaeger_url),
        **{f"--replicas {name}": name not in OBSERVING for name in options.replicas},
    }
    for flag, given in refused.items():
        if given:
            raise OptionError(
                f"{flag}: not with --observe, which writes nothing and serves no requests"
            )


def default_data_dir(server: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder for one cluster, by the URL of its API server, under the user's data home."""
    home = environ.get("XDG_DATA_HOME") or str(Path("~/.local/share").expanduser())
    url = urlsplit(server)
    place = f"{url.netloc.rpartition('@')[2]}{url.path.rstrip('/')}"
    name = "".join(c if c.isascii() and (c.isalnum() or c in ".-") else "-" for c in place)
    return Path(home) / "tutti" / (name or "cluster")
