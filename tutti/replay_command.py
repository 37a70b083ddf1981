"""`tutti replay` as it is typed."""

import subprocess
import sys

import click


@click.command(
    context_settings={
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
        "help_option_names": [],
    }
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def replay(arguments: tuple[str, ...]) -> None:
    """Run a planner's recording again: `tutti replay FILE [--scheduler-conf FILE]`.

    With the recorded configuration every decision must come out byte for byte; with another one it
    says what that decides otherwise. The planner itself does it, in a process of its own.
    """
    command = [sys.executable, "-m", "services.gang_planner.replay", *arguments]
    sys.exit(subprocess.run(command, check=False).returncode)
