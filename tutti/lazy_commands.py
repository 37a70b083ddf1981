"""A group of commands that are imported when they are typed."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import click
from typing_extensions import override

Table: TypeAlias = Mapping[str, tuple[Callable[[], click.Command], str]]
"""How to get each subcommand, and what it does in one line."""


class LazyCommands(click.Group):
    """A group whose subcommands are imported when they are asked for."""

    def __init__(self, *args: Any, table: Table, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._table.get(cmd_name)
        return None if entry is None else entry[0]()

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self._table.items()])
