"""Standard input and output that cannot be used: a closed input, a full disk."""

import errno
import io
import sys
from typing import Any, Final

import click
from typing_extensions import override

#: Exit status of a command whose output cannot be written: 1 may be an answer.
_NO_OUTPUT: Final = 2


class StreamCommand(click.Command):
    """A program's root: errors of its output, help included, end it with a line and status 2, and a
    closed input is reported when it is read.
    """

    @override
    def main(self, *args: Any, **kwargs: Any) -> Any:
        if sys.stdin is None:
            sys.stdin = io.TextIOWrapper(_ClosedInput())
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            # Commands report their own; click has ended the program where the reader is gone.
            click.echo(f"tutti: {error}", err=True)
            sys.exit(_NO_OUTPUT)


class _ClosedInput(io.BufferedIOBase):
    """In place of a standard input that was closed before the program began."""

    @override
    def readable(self) -> bool:
        return True

    @override
    def read(self, size: int | None = -1, /) -> bytes:
        raise OSError(errno.EBADF, "the standard input is closed")
