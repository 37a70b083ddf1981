"""The program `vcctl`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click
import msgspec
from click.exceptions import NoArgsIsHelpError
from typing_extensions import override

from shared.runtime.program_version import program_version
from tutti.api.conventions import VOLCANO
from tutti.api.flags import PflagCommand, remember_verbosity
from tutti.cli import StreamCommand
from tutti.vcctl import kinds
from tutti.vcctl.help import volcano_help
from tutti.vcctl.queues import queue


class NotUnderstood(click.UsageError):
    """A usage error, reported as click does, with the exit status of Go's programs."""

    exit_code = 1


class LikeCobra(PflagCommand, StreamCommand):
    """A command that ends with status 1 after a usage error."""

    @override
    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        with _usage_status():
            return super().make_context(info_name, args, parent, **extra)

    @override
    def invoke(self, ctx: click.Context) -> Any:
        with _usage_status():
            return super().invoke(ctx)


class Program(LikeCobra, click.Group):
    """The root of `vcctl`."""


@contextmanager
def _usage_status() -> Iterator[None]:
    try:
        yield
    except NoArgsIsHelpError as error:
        # As in Go's programs, a group without a command prints its help and succeeds.
        click.echo(error.format_message())
        raise click.exceptions.Exit(0) from error
    except click.UsageError as error:
        raise NotUnderstood(error.format_message(), error.ctx) from error


@click.command("version", cls=PflagCommand)
def version() -> None:
    """Print the version information."""
    click.echo("API Version: v1alpha1")
    click.echo(f"Version: {program_version()} (Tutti)")


@click.command("help", cls=PflagCommand)
@click.argument("words", nargs=-1)
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Help about any command."""
    root = ctx.find_root()
    command: click.Command = root.command
    context = root
    for word in words:
        inner = command.get_command(context, word) if isinstance(command, click.Group) else None
        if inner is None:
            raise click.UsageError(f"Unknown help topic {' '.join(words)!r}", root)
        context = click.Context(inner, parent=context, info_name=word)
        command = inner
    click.echo(command.get_help(context))


_COMMANDS: Final = (
    *(kinds.job, kinds.jobflow, kinds.jobtemplate, kinds.pod, queue, kinds.podgroup, kinds.cronjob),
    *(help_, version),
)
_HABITS: Final = msgspec.structs.replace(VOLCANO, help_=volcano_help)


@click.command(
    cls=Program,
    commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "obj": _HABITS},
)
@click.option(
    "--v", "-v", "verbosity", type=int, default=0, expose_value=False, callback=remember_verbosity
)
def vcctl() -> None:
    """Volcano's command line, served by Tutti."""


def main() -> None:
    vcctl(prog_name="vcctl")
