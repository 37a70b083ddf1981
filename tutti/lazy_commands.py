"""A group of commands that are imported on their first use."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeAlias

import click
from typing_extensions import override

Table: TypeAlias = Mapping[str, tuple[str, str]]
"""By name of a subcommand: its definition as "module:attribute", and its line in the help."""


class LazyCommands(click.Group):
    """A group that imports each subcommand on its first use."""

    def __init__(self, *args: Any, table: Table, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        module, _, attribute = self._table[cmd_name][0].partition(":")
        found: click.Command = getattr(import_module(module), attribute)
        return found

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self._table.items()])
