"""The `tutti` command: a table of subcommands, each imported only when it is typed.

`tutti --help` and `tutti up` must not import modules that they do not use: rich, aiohttp, the
embedded cluster. A new subcommand is one module and one line of the table.
"""

import os
import sys
from collections.abc import Mapping, Sequence
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


class Tutti(StreamCommand, click.Group):
    """The root of `tutti`, which imports a subcommand on its first use. It also has the commands of
    `OLD_SPELLINGS`, and does not list them.
    """

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for table in HEADINGS.values() for name in table]

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for table in HEADINGS.values():
            if cmd_name in table:
                return _imported(table[cmd_name][0])
        return None

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for heading, table in HEADINGS.items():
            with formatter.section(heading):
                rows = [(name.ljust(width), summary) for name, (_, summary) in table.items()]
                formatter.write_dl(rows)

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if resolved := self.find_old(ctx, args):
            return resolved
        if not ctx.resilient_parsing and args[0] not in self.list_commands(ctx):
            moved = [old for old in OLD_SPELLINGS if old.split()[0] == args[0]]
            if moved:
                ctx.fail("; ".join(f"`{old}` is now `{OLD_SPELLINGS[old]}`" for old in moved))
        return super().resolve_command(ctx, args)

    def find_old(
        self, ctx: click.Context, words: Sequence[str]
    ) -> tuple[str, click.Command, list[str]] | None:
        """The command that an old spelling at the beginning of the words means: with this spelling,
        and the words behind it; None where they begin with none.
        """
        for length in (2, 1):
            old = " ".join(words[:length])
            if old in OLD_SPELLINGS:
                first, *inner = OLD_SPELLINGS[old].split()
                command = _imported(_VCCTL) if first == "vcctl" else self.get_command(ctx, first)
                while inner and isinstance(command, click.Group):
                    command = command.get_command(ctx, inner.pop(0))
                if command is not None:
                    return old, command, [*inner, *words[length:]]
        return None


def _imported(definition: str) -> click.Command:
    module, _, attribute = definition.partition(":")
    command: click.Command = getattr(import_module(module), attribute)
    return command


#: Each subcommand by the heading in `tutti --help`: where it is defined, and its line there.
HEADINGS: Final[Mapping[str, Table]] = {
    "For users": {
        "why": ("tutti.why.command:why", "Explain why a pod, a PodGroup or a job waits."),
        "fits": ("tutti.fits_command:fits", "Report whether manifests would fit now, and where."),
        "explain-dialect": (
            "tutti.explain_command:explain_dialect",
            "Explain how manifests are understood, and what they lack.",
        ),
        "job": ("tutti.job.command:job", "Submit, view, suspend and resume Jobs; read their logs."),
        "queues": (
            "tutti.queues_command:queues",
            "Show what queues use, deserve and have reserved, and why.",
        ),
        "nodes": (
            "tutti.nodes_command:nodes",
            "Show what is in use on each node, and by which gangs.",
        ),
        "timeline": (
            "tutti.timeline.command:timeline",
            "Draw which gangs ran on which nodes, and when.",
        ),
        "trace": ("tutti.trace.command:trace", "Show what happened to a gang, and when."),
        "console": (
            "tutti.console_command:console",
            "Open the console: queues, gangs and nodes in a browser.",
        ),
    },
    "For operators": {
        "up": ("tutti.up.command:up", "Run all services, NATS included, against a cluster."),
        "status": (
            "tutti.status.command:status",
            "Show services, gangs by phase and decisions per second.",
        ),
        "bundle": (
            "tutti.bundle_command:bundle",
            "Collect diagnostics for a bug report in one file.",
        ),
        "replay": (
            "tutti.forwarding_commands:replay",
            "Replay a planner's recording, also with other settings.",
        ),
        "simulate": (
            "tutti.simulate.command:simulate",
            "Try configurations on the jobs of a trace.",
        ),
        "migrate": ("tutti.migrate.command:migrate", "Prepare a switch from another scheduler."),
        "crds": ("tutti.crds_command:crds", "Install or update Tutti's CRDs, or print them."),
        "provision": (
            "tutti.provision.command:provision",
            "Create and renew keys and certificates for NATS.",
        ),
    },
    "To try it": {
        "demo": (
            "tutti.demo.command:demo",
            "Compare pod-by-pod and gang scheduling, without a cluster.",
        ),
        "cluster": (
            "tutti.cluster_command:cluster",
            "Run an embedded cluster, to try Tutti without a real one.",
        ),
        "bench": ("tutti.forwarding_commands:bench", "Run the benchmarks of a checkout."),
    },
    "For tools": {
        "mcp": ("tutti.mcp.command:mcp", "Serve read-only tools to assistants (MCP)."),
        "completion": ("tutti.completion_command:completion", "Print a shell completion script."),
        "nats-reload": (
            "tutti.provision.command:nats_reload",
            "Make nats-server reload files that were replaced.",
        ),
    },
}

#: Spellings of former versions and of Volcano's users, and what each means: a command of `tutti`,
#: with flags, or one of `vcctl`. They print the same, and are neither in the help nor completed.
OLD_SPELLINGS: Final[Mapping[str, str]] = {
    "convert queues": "migrate queues",
    "observe report": "migrate observe",
    "top nodes": "nodes",
    "top queues": "queues --shares",
    "job delete": "vcctl job delete",
    "job list": "vcctl job list",
    "cronjob": "vcctl cronjob",
    "jobflow": "vcctl jobflow",
    "jobtemplate": "vcctl jobtemplate",
    "pod": "vcctl pod",
    "podgroup": "vcctl podgroup",
    "queue": "vcctl queue",
}
_VCCTL: Final = "tutti.vcctl.command:vcctl"


@click.command(cls=Tutti, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tutti-scheduler", message="%(prog)s %(version)s")
def main() -> None:
    """Tutti, a gang scheduler for Kubernetes: all members of a job are bound together, or none.

    kubectl lists, creates and deletes Jobs, Queues and other objects; so does vcctl, with Volcano's
    commands.
    """


def kubectl_plugin() -> None:
    """`kubectl tutti`: kubectl runs the program `kubectl-tutti` on PATH."""
    main(prog_name="kubectl tutti")


if __name__ == "__main__":
    main()
