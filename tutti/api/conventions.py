"""Where the programs differ that share these commands: `tutti`, `vcctl`, the Slurm-like ones.

A program's root command puts its `Conventions` into click's context; without any, it is `tutti`.
"""

from collections.abc import Callable

import click
import msgspec


class Conventions(msgspec.Struct, frozen=True, kw_only=True):
    """One program's habits.

    Attributes:
        namespace: Namespace where none is given; "" for that of the context.
        names_by_part: Whether `--selector word` means a part of the name, as in Volcano's tools;
            what reads as a selector (`a=b`, `!a`) is one all the same.
        volcano_failures: Whether a failure is reported as Volcano's tools report it: on standard
            output, with status 255.
        default_name: Name of an object that is created without one; "" where that is an error.
        ignored: Flags that are taken, with their value, and mean nothing here: those that Go's
            libraries give every program.
        help_: Writes the help of a command; None where it is click's.
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
    """Those of the program that runs, or whose context is given."""
    context = context or click.get_current_context(silent=True)
    found = None if context is None else context.find_object(Conventions)
    return found or Conventions()
