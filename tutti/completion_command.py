"""`tutti completion`: the completion scripts of the shells.

The scripts are click's: they call the program itself, which knows its flags and can list objects.
"""

from typing import Final

import click
from click.shell_completion import get_completion_class

from shared.model.invariants import required

_PROGRAMS: Final = (
    "tutti",
    "vcctl",
    "vsub",
    "vjobs",
    "vcancel",
    "vsuspend",
    "vresume",
    "vqueues",
)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.argument("programs", nargs=-1, type=click.Choice(_PROGRAMS), metavar="[PROGRAM]...")
def completion(*, shell: str, programs: tuple[str, ...]) -> None:
    """Print the completion script of `tutti`, or of the programs named, for a shell.

    For bash: source <(tutti completion bash)
    """
    completion_class = required(get_completion_class(shell), f"completion for {shell}")
    for program in programs or ("tutti",):
        variable = f"_{program.upper()}_COMPLETE"
        click.echo(completion_class(click.Command(program), {}, program, variable).source())
