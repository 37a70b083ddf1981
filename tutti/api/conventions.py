"""Differences between the programs that have these commands: `tutti`, `vcctl`, the Slurm-like ones.

A program's root command puts its `Conventions` into click's context; `tutti` puts none.
"""

from collections.abc import Callable

import click
import msgspec


class Conventions(msgspec.Struct, frozen=True, kw_only=True):
    #: Default namespace; "" for the context's.
    namespace: str = ""
    #: Whether `--selector word` means a part of the name, as in Volcano's tools; a selector (`a=b`,
    #: `!a`) is read as one in any case.
    names_by_part: bool = False
    #: Whether a failure is reported on standard output, with status 255, as by Volcano's tools.
    volcano_failures: bool = False
    #: Name of an object that is created without one; "" where that is an error.
    default_name: str = ""
    #: Flags that Go's libraries give every program; accepted with their value and ignored.
    ignored: frozenset[str] = frozenset()
    #: Returns the help of a command; None: click's help.
    help_: Callable[[click.Context], str | None] | None = None


VOLCANO = Conventions(
    namespace="default",
    names_by_part=True,
    volcano_failures=True,
    default_name="test",
    ignored=frozenset({"--log-flush-frequency", "--vmodule"}),
)


def conventions(context: click.Context | None = None) -> Conventions:
    """The conventions of the program that runs, or of a context's program."""
    context = context or click.get_current_context(silent=True)
    own = None if context is None else context.find_object(Conventions)
    return own or Conventions()
