"""Differences between the programs that have these commands: `tutti`, `vcctl`, the Slurm-like ones.

A program's root command puts its `Conventions` into click's context; `tutti` puts none.
"""

from collections.abc import Callable

import click
import msgspec


class Conventions(msgspec.Struct, frozen=True, kw_only=True):
    """The conventions of one program.

    Attributes:
        namespace: Default namespace; "" for the context's.
        names_by_part: Whether `--selector word` means a part of the name, as in Volcano's tools;
            a selector (`a=b`, `!a`) is read as one in any case.
        volcano_failures: Whether a failure is reported as Volcano's tools report it: on standard
            output, with status 255.
        default_name: Name of an object that is created without one; "" where that is an error.
        ignored: Flags that are accepted with their value and ignored: those that Go's libraries
            give every program.
        help_: Returns the help of a command; None: click's help.
    """

    namespace: str = ""
    names_by_part: bool = False
    volcano_failures: bool = False
    default_name: str = ""
    ignored: frozenset[str] = frozenset()
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
    found = None if context is None else context.find_object(Conventions)
    return found or Conventions()
