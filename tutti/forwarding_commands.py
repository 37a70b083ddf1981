"""`tutti bench` and `tutti replay`: each passes its arguments to another program."""

import importlib.util
import runpy
import subprocess
import sys
from typing import Final

import click

from tutti.api.failures import fail

#: All arguments are passed on, `--help` and unknown flags included.
_SETTINGS: Final = {
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}
_arguments = click.argument("arguments", nargs=-1, type=click.UNPROCESSED)


@click.command(context_settings=_SETTINGS)
@_arguments
def bench(arguments: tuple[str, ...]) -> None:
    """Run the benchmarks: the same as `python -m bench`, with the same flags."""
    if importlib.util.find_spec("bench") is None:
        fail("the benchmarks are in the checkout, not in this installation")
    sys.argv = ["tutti bench", *arguments]
    runpy.run_module("bench", run_name="__main__", alter_sys=True)


@click.command(context_settings=_SETTINGS)
@_arguments
def replay(arguments: tuple[str, ...]) -> None:
    """Replay a planner's recording: `tutti replay FILE [--scheduler-conf FILE]`.

    With the recorded configuration every decision must be the same, byte for byte. With another
    configuration it reports the decisions that differ. The planner runs in a process of its own.
    """
    command = [sys.executable, "-m", "services.gang_planner.replay", *arguments]
    sys.exit(subprocess.run(command, check=False).returncode)
