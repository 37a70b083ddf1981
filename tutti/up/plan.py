"""The processes of `tutti up` and their flags: a pure function of the options."""

from pathlib import Path
from typing import Final

from shared.bus.permissions import CONTROLLERS
from shared.contracts.visibility_resources import UP_SERVICE
from shared.model.invariants import InvariantViolation
from tutti.up.keys import Keys
from tutti.up.options import UpOptions
from tutti.up.processes import ProcessSpec

#: The API server on this machine reaches the API service here, where it listens.
_API_HOST: Final = "127.0.0.1"


def plan(
    options: UpOptions,
    *,
    nats_url: str,
    data_dir: Path,
    keys: Keys | None = None,
    podgroups: bool = True,
) -> tuple[ProcessSpec, ...]:
    """All processes, in the order of starting.

    `podgroups`: whether our controllers of Volcano's kinds run, and create PodGroups for bare pods;
    for an observation, whether the other scheduler's controllers do.
    """
    specs: list[ProcessSpec] = []
    for service in options.services:
        for ordinal in range(options.count(service)):
            flags = [
                f"--nats-url={nats_url}",
                *(keys or Keys()).flags(_user(service, podgroups=podgroups)),
                f"--instance={service}-{ordinal}",
                f"--ordinal={ordinal}",
                f"--log-format={'text' if options.verbose else 'json'}",
                *_trace_flags(options),
                *_own_flags(options, service, ordinal, data_dir, podgroups=podgroups),
            ]
            specs.append(
                ProcessSpec(
                    service=service,
                    ordinal=ordinal,
                    flags=tuple(flags),
                    log=None if options.verbose else data_dir / "logs" / f"{service}-{ordinal}.log",
                )
            )
    return tuple(specs)


def _user(service: str, *, podgroups: bool) -> str:
    if service != "controller":
        return service
    return CONTROLLERS if podgroups else "controller-status"


def _own_flags(
    options: UpOptions, service: str, ordinal: int, data_dir: Path, *, podgroups: bool
) -> list[str]:
    names = [f"--scheduler-name={name}" for name in options.scheduler_names]
    match service:
        case "watcher":
            switch = "--podgroup-controller" if podgroups else "--no-podgroup-controller"
            return [*_cluster_flags(options), *names, switch]
        case "gang-planner":
            conf = options.scheduler_conf
            return [
                f"--recording-dir={data_dir / 'recordings' / f'{service}-{ordinal}'}",
                *([f"--scheduler-conf={conf}"] if conf else []),
            ]
        case "binder":
            return _cluster_flags(options)
        case "observer":
            return [f"--report-file={options.report}"] if options.report else []
        case "controller":
            # The controllers of Volcano's kinds run together or not at all.
            controllers = "*" if podgroups else "status"
            over = ["--take-over"] if options.take_over else []
            return [*_cluster_flags(options), *names, *over, f"--controllers={controllers}"]
        case "admission-webhook":
            # Only the first one can use the given port; further ones use any free port.
            port = options.webhook_port if ordinal == 0 else 0
            conf = options.admission_conf
            return [
                *_cluster_flags(options),
                *names,
                f"--port={port}",
                f"--cert-dir={data_dir / 'webhook' / str(ordinal)}",
                *([f"--admission-conf={conf}"] if conf else []),
            ]
        case "api":
            namespace, name = UP_SERVICE
            return [
                *_cluster_flags(options),
                *names,
                f"--port={options.api_port if ordinal == 0 else 0}",
                f"--cert-dir={data_dir / 'api' / str(ordinal)}",
                f"--external={_API_HOST}",
                f"--service-namespace={namespace}",
                f"--service-name={name}",
                *([f"--jaeger-url={options.jaeger_url}"] if options.jaeger_url else []),
                # One process can be behind such a Service.
                *(["--no-register"] if ordinal else []),
            ]
        case _:
            raise InvariantViolation(service, "must be one of the services")


def _trace_flags(options: UpOptions) -> list[str]:
    if not options.otlp_endpoint:
        return []
    return [f"--otlp-endpoint={options.otlp_endpoint}", f"--trace-ratio={options.trace_ratio}"]


def _cluster_flags(options: UpOptions) -> list[str]:
    """How to reach the cluster; the planner has no credentials and gets none of these."""
    kubeconfig = [f"--kubeconfig={options.kubeconfig}"] if options.kubeconfig else []
    context = [f"--context={options.context}"] if options.context else []
    return [*kubeconfig, *context]
