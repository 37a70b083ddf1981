"""`tutti completion`: the shell's side of completing our commands, and kubectl's.

The scripts are click's: they ask the program itself, which knows its flags and can list objects.
"""

import sys
from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

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
#: Cobra's directive "no file names", which kubectl expects on the last line.
_NO_FILES: Final = ":4"


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


def kubectl_complete() -> None:
    """`kubectl_complete-tutti WORD...`: kubectl runs it to complete `kubectl tutti WORD...`."""
    from tutti.cli import main

    *words, begun = sys.argv[1:] or [""]
    found = ShellComplete(main, {}, "kubectl tutti", "").get_completions(words, begun)
    for item in found:
        click.echo(f"{item.value}\t{item.help or ''}".rstrip())
    click.echo(_NO_FILES)
