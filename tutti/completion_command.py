"""`tutti completion`: the shell's side of completing the commands.

The scripts are click's: they ask the program itself, which knows its flags and can list objects.
"""

from typing import Final

import click
from click.shell_completion import get_completion_class

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
    """Print the script that completes commands in a shell; of `tutti`, or of the programs named.

    For bash: source <(tutti completion bash)
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows the three"
    for program in programs or ("tutti",):
        variable = f"_{program.upper()}_COMPLETE"
        click.echo(kind(click.Command(program), {}, program, variable).source())
