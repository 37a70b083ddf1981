"""Everything that Volcano's `vcctl` offers is there, under the same names."""

import click
import pytest

from tutti.api.conventions import VOLCANO
from tutti.vcctl.command import vcctl
from tutti.vcctl.help import COMMANDS, everywhere

LEAVES = [name for name, entry in COMMANDS.items() if entry.flags or name == "queue list"]


def command(name: str) -> click.Command:
    found: click.Command = vcctl
    context = click.Context(vcctl)
    for word in name.split():
        assert isinstance(found, click.Group)
        inner = found.get_command(context, word)
        assert inner is not None, name
        found = inner
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_exists(name: str) -> None:
    assert command(name).help


@pytest.mark.parametrize("name", LEAVES)
def test_the_command_takes_each_flag_with_its_letter_and_its_default(name: str) -> None:
    params = [each for each in command(name).params if isinstance(each, click.Option)]
    for flag in (*COMMANDS[name].flags, *everywhere()):
        (option,) = [each for each in params if f"--{flag.name}" in each.opts]
        assert not flag.letter or f"-{flag.letter}" in option.opts, flag
        assert option.is_flag == (not flag.kind), flag
        # These defaults are habits of the program, not of the flag.
        if name == "queue create" and flag.name == "name":
            assert flag.default.strip('"') == VOLCANO.default_name
        elif flag.default and flag.name != "namespace":
            assert str(option.default) == flag.default.strip('"'), flag
