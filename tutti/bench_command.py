"""`tutti bench` as it is typed: the benchmarks of a checkout."""

import importlib.util
import runpy
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
def bench(arguments: tuple[str, ...]) -> None:
    """Run the benchmarks: the same as `python -m bench`, whose flags these are."""
    if importlib.util.find_spec("bench") is None:
        raise click.ClickException("the benchmarks are in the checkout, not in this installation")
    sys.argv = ["tutti bench", *arguments]
    runpy.run_module("bench", run_name="__main__", alter_sys=True)
