"""`tutti completion`: the completion scripts of the shells; and what completes `kubectl tutti`.

The scripts are click's: they call the program itself, which knows its flags and can list objects.
"""

import sys
from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

from shared.model.invariants import required
from tutti.cli import main

_PROGRAMS: Final = ("tutti", "vcctl", "vsub", "vjobs", "vcancel", "vsuspend", "vresume", "vqueues")


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


#: Cobra's directive "no file names", which kubectl expects on the last line.
_NO_FILES: Final = ":4"


def kubectl_complete() -> None:
    """`kubectl_complete-tutti WORD...`: kubectl runs it to complete `kubectl tutti WORD...`."""
    *words, begun = sys.argv[1:] or [""]
    completions = ShellComplete(main, {}, "kubectl tutti", "").get_completions(words, begun)
    for item in completions:
        click.echo(f"{item.value}\t{item.help or ''}".rstrip())
    click.echo(_NO_FILES)
