"""The `tutti` command: a table of subcommands, each imported only when it is typed.

`tutti --help` and `tutti up` must not import modules that they do not use: rich, aiohttp, the
embedded cluster. A new subcommand is one module and one line of the table.
"""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
from typing_extensions import override

#: Exit status of a command whose output cannot be written: 1 may be an answer.
_NO_OUTPUT: Final = 2


class StreamCommand(click.Command):
    """A program's root: errors of its output, help included, end it with a line and status 2, a
    closed input is read as an empty one, and what is written to a closed output is dropped.
    """

    @override
    def main(self, *args: Any, **kwargs: Any) -> Any:
        if sys.stdin is None:
            sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - until the end
        if sys.stdout is None:
            sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            # Commands report their own; click has ended the program where the reader is gone.
            click.echo(f"tutti: {error}", err=True)
            sys.exit(_NO_OUTPUT)


Table: TypeAlias = Mapping[str, tuple[str, str]]
"""By name of a subcommand: its definition as "module:attribute", and its line in the help."""


class LazyCommands(StreamCommand, click.Group):
    """A group that imports each subcommand on its first use."""

    def __init__(self, *args: Any, table: Table, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        module, _, attribute = self._table[cmd_name][0].partition(":")
        found: click.Command = getattr(import_module(module), attribute)
        return found

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self._table.items()])


#: Each subcommand: where it is defined, and its line in `tutti --help`.
COMMANDS: Final[Table] = {
    "demo": (
        "tutti.demo.command:demo",
        "Compare pod-by-pod and gang scheduling on an embedded cluster.",
    ),
    "up": ("tutti.up.command:up", "Run all services, NATS included, against a cluster."),
    "why": ("tutti.why.command:why", "Explain why a pod, a PodGroup or a job waits."),
    "job": (
        "tutti.job.command:job",
        "Submit, list, view, suspend, resume and delete Jobs; read their logs.",
    ),
    "queue": ("tutti.queue.command:queue", "Create, list, open, close and delete Queues."),
    "jobflow": ("tutti.object_commands:jobflow", "Create, list and delete JobFlows."),
    "jobtemplate": ("tutti.object_commands:jobtemplate", "Create, list and delete JobTemplates."),
    "cronjob": (
        "tutti.object_commands:cronjob",
        "Create, list, suspend and delete CronJobs of Jobs.",
    ),
    "podgroup": ("tutti.object_commands:podgroup", "List, create and delete PodGroups."),
    "pod": ("tutti.object_commands:pod", "List the pods of Jobs and queues."),
    "status": (
        "tutti.status.command:status",
        "Show services, gangs by phase and decisions per second.",
    ),
    "queues": (
        "tutti.queues_command:queues",
        "Show what each queue uses, deserves and has reserved, and why.",
    ),
    "console": (
        "tutti.console_command:console",
        "Open the console: queues, gangs and nodes in a browser.",
    ),
    "top": ("tutti.top_command:top", "Show the queues and nodes with the highest usage."),
    "timeline": (
        "tutti.timeline.command:timeline",
        "Draw which gangs ran on which nodes, and when.",
    ),
    "bundle": ("tutti.bundle_command:bundle", "Collect diagnostics for a bug report in one file."),
    "trace": ("tutti.trace.command:trace", "Show what happened to a gang, and when."),
    "observe": (
        "tutti.observe_command:observe",
        "Show what `tutti up --observe` found beside another scheduler.",
    ),
    "migrate": (
        "tutti.migrate.command:migrate",
        "Report what would change if Tutti replaced another scheduler.",
    ),
    "convert": (
        "tutti.convert.command:convert",
        "Convert queues of Kueue, KAI and YuniKorn to Volcano Queues.",
    ),
    "cluster": (
        "tutti.cluster_command:cluster",
        "Run an embedded cluster, to try Tutti without a real one.",
    ),
    "explain-dialect": (
        "tutti.explain_command:explain_dialect",
        "Explain how manifests are understood: gangs, minima, queues, schedulers.",
    ),
    "fits": ("tutti.fits_command:fits", "Report whether manifests would fit now, and where."),
    "mcp": (
        "tutti.mcp.command:mcp",
        "Serve read-only tools to assistants (Model Context Protocol).",
    ),
    "replay": (
        "tutti.forwarding_commands:replay",
        "Replay a planner's recording, with its configuration or another one.",
    ),
    "crds": ("tutti.crds_command:crds", "Install or update Tutti's CRDs, or print them."),
    "provision": (
        "tutti.provision.command:provision",
        "Create and renew keys and certificates for NATS.",
    ),
    "nats-reload": (
        "tutti.provision.command:nats_reload",
        "Make nats-server reload files that were replaced.",
    ),
    "completion": ("tutti.completion_command:completion", "Print a shell completion script."),
    "bench": ("tutti.forwarding_commands:bench", "Run the benchmarks of a checkout."),
}


@click.command(
    cls=LazyCommands, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="tutti-scheduler", message="%(prog)s %(version)s")
def main() -> None:
    """Tutti, a gang scheduler for Kubernetes: all members of a job are bound together, or none."""


def kubectl_plugin() -> None:
    """`kubectl tutti`: kubectl runs the program `kubectl-tutti` on PATH."""
    main(prog_name="kubectl tutti")


if __name__ == "__main__":
    main()
