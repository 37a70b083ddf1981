"""`tutti up`: NATS and all services, against a cluster."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from tutti.up.processes import Launcher
    from tutti.up.watchdog import Heartbeats

from tutti.up.options import (
    SCHEDULER_NAMES,
    SERVICES,
    OptionError,
    UpOptions,
    check_addresses,
    check_combination,
    read_replicas,
)


@click.command()
@click.option(
    "--kubeconfig",
    "-k",
    default="",
    metavar="FILE",
    help="Kubeconfig of the cluster; default: as kubectl finds it.",
)
@click.option("--context", default="", metavar="NAME", help="Context in the kubeconfig.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    default=SCHEDULER_NAMES,
    show_default=True,
    metavar="NAME",
    help="Schedule pods with this scheduler name; repeatable.",
)
@click.option(
    "--nats", "nats_url", default="", metavar="URL", help="Use this NATS; default: start one."
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for logs and NATS's store; default: a folder per cluster under the data home.",
)
@click.option(
    "--scheduler-conf",
    type=click.Path(exists=True, dir_okay=False),
    help="volcano-scheduler.conf, reloaded when it changes.",
)
@click.option(
    "--admission-conf",
    type=click.Path(exists=True, dir_okay=False),
    help="Volcano's admission configuration (resource groups), reloaded when it changes.",
)
@click.option(
    "--webhook-port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port of the admission webhook; 0: any free port.",
)
@click.option("--webhook/--no-webhook", default=True, help="Run the admission webhook.")
@click.option(
    "--api-port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port of the API service; 0: any free port.",
)
@click.option(
    "--api/--no-api",
    default=None,
    help="Run the API service and register it with the API server: users' commands, the console "
    "and kubectl get gangs ask it. Default: if the API server is on this machine.",
)
@click.option("--install-crds", is_flag=True, help="Create or update Tutti's CRDs first.")
@click.option(
    "--kube-batch-crds",
    is_flag=True,
    help="With --install-crds: also create the CRDs of kube-batch's PodGroups and Queues.",
)
@click.option(
    "--replicas",
    multiple=True,
    metavar="SERVICE=N",
    help=f"Number of processes of a service ({', '.join(SERVICES)}); repeatable.",
)
@click.option(
    "--otlp", "otlp_endpoint", default="", metavar="URL", help="OTLP/HTTP endpoint for traces."
)
@click.option(
    "--trace-ratio",
    type=click.FloatRange(0.0, 1.0),
    default=1.0,
    show_default=True,
    help="Share of traces that is exported.",
)
@click.option(
    "--jaeger",
    "jaeger_url",
    default="",
    metavar="URL",
    help="Jaeger's user interface, to which gangs in the API and the console link.",
)
@click.option("--take-over", is_flag=True, help="Start although another scheduler is active.")
@click.option(
    "--observe",
    is_flag=True,
    help="Run beside another scheduler: write nothing to the cluster, report decisions only.",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --observe: keep the report in this file, as JSON.",
)
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write ports and pids to this file, as JSON, once all services are ready.",
)
@click.option("--verbose", "-v", is_flag=True, help="Let services log to standard error.")
def up(*, replicas: tuple[str, ...], **flags: object) -> None:
    """Run all services against a cluster until SIGTERM or Ctrl-C.

    Prints one line when all services are ready. Exits with status 2 when a flag, or a file that it
    names, is invalid.
    """
    try:
        options = _options(replicas, flags)
    except OptionError as error:
        raise click.UsageError(str(error)) from None
    sys.exit(_run(options))


def _options(replicas: tuple[str, ...], flags: dict[str, object]) -> UpOptions:
    """Check rules that click does not check, and make paths absolute, so that services' messages
    are clear.
    """
    import msgspec

    given = dict(flags)
    for name in ("kubeconfig", "scheduler_conf", "admission_conf"):
        path = given[name]
        given[name] = str(Path(str(path)).expanduser().absolute()) if path else ""
    for name in ("data_dir", "ready_file", "report"):
        path = given[name]
        given[name] = path.expanduser().absolute() if isinstance(path, Path) else None
    options = msgspec.convert(
        {**given, "replicas": read_replicas(replicas)}, UpOptions, strict=False
    )
    check_addresses(options)
    check_combination(options)
    return options


def _launcher(
    options: UpOptions, heartbeats: "Heartbeats", say: Callable[[str], None]
) -> "AbstractAsyncContextManager[Launcher]":
    """The launcher; its fork server starts at once, and imports while this process does."""
    if sys.platform != "linux":
        # Forking without exec is not safe on other platforms, and children are not tied to us.
        from tutti.up.processes import ExecLauncher

        return ExecLauncher(heartbeats.environ)
    from tutti.up.fork_server_launcher import TRACING, ForkServerLauncher

    modules = TRACING if options.otlp_endpoint and options.trace_ratio else ()
    return ForkServerLauncher(modules, heartbeats, say)


def _run(options: UpOptions) -> int:
    from tutti.up.fork_server import import_aiohttp
    from tutti.up.watchdog import Heartbeats

    def say(line: str) -> None:
        # Standard error may be a file on a full disk.
        with contextlib.suppress(OSError):
            click.echo(f"tutti: {line}", err=True)

    heartbeats = Heartbeats()
    launcher = _launcher(options, heartbeats, say)
    import_aiohttp()
    # Imported here so that `tutti up --help` and wrong flags cost nothing.
    from shared.bus.errors import BusError
    from shared.kube.errors import KubeError
    from tutti.api.failures import Refusal
    from tutti.nats_server import NatsServerError
    from tutti.up.all_services import AllServices
    from tutti.up.supervisor import WRONG_SETTINGS, ServiceRefused

    logging.basicConfig(format="tutti: %(message)s", level=logging.WARNING)
    # The task that keeps our NATS running reports its problems.
    logging.getLogger("shared.bus").setLevel(logging.ERROR)

    def announce(line: str) -> None:
        click.echo(f"tutti: {line}")

    try:
        asyncio.run(AllServices(options, launcher, heartbeats, say, announce).run())
    except (BusError, KubeError, NatsServerError, OSError, Refusal) as error:
        for line in str(error).splitlines():
            say(line)
        return WRONG_SETTINGS if isinstance(error, ServiceRefused) else 1
    return 0
