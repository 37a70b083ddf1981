"""`kubectl_complete-tutti`: kubectl runs this program to complete `kubectl tutti ...`."""

import sys
from typing import Final

import click
from click.shell_completion import ShellComplete

from tutti.cli import main

#: Cobra's directive "no file names", which kubectl expects on the last line.
_NO_FILES: Final = ":4"


def kubectl_complete() -> None:
    """`kubectl_complete-tutti WORD...`: kubectl runs it to complete `kubectl tutti WORD...`."""
    *words, begun = sys.argv[1:] or [""]
    found = ShellComplete(main, {}, "kubectl tutti", "").get_completions(words, begun)
    for item in found:
        click.echo(f"{item.value}\t{item.help or ''}".rstrip())
    click.echo(_NO_FILES)
