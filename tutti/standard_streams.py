"""Standard input and output that cannot be used: closed ones, a full disk."""

import os
import sys
from pathlib import Path
from typing import Any, Final

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
