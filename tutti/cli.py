"""The `tutti` command: a table of subcommands, each imported only when it is typed.

`tutti --help` and `tutti up` must not pay for what they do not use: rich, aiohttp, the embedded
cluster.
"""

import importlib
from typing import Final

import click
from typing_extensions import override

#: Name, module and function of each subcommand, and what it does in one line.
_COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "demo": (
        "tutti.demo.command",
        "demo",
        "Play the seeds' experiment on an embedded cluster.",
    ),
    "up": (
        "tutti.up.command",
        "up",
        "Run the whole suite, NATS included, against a cluster.",
    ),
    "why": (
        "tutti.why.command",
        "why",
        "Say why a pod, a PodGroup or a job waits.",
    ),
    "status": (
        "tutti.status.command",
        "status",
        "Show services, gangs by phase and decisions a second.",
    ),
    "cluster": (
        "tutti.cluster_command",
        "cluster",
        "An embedded cluster for people who have none.",
    ),
    "bench": (
        "tutti.bench_command",
        "bench",
        "Run the benchmarks of a checkout.",
    ),
}


class LazyCommands(click.Group):
    """A group whose subcommands are imported when they are asked for."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, function, _ = entry
        command = getattr(importlib.import_module(module), function)
        assert isinstance(command, click.Command), f"{module}.{function} is no command"
        return command

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, _, summary) in _COMMANDS.items()])


@click.command(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tutti", message="%(prog)s %(version)s")
def main() -> None:
    """Tutti, a gang scheduler for Kubernetes: all members of a job are bound together, or none."""


if __name__ == "__main__":
    main()
