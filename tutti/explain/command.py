"""`tutti explain-dialect`: how manifests are understood."""

import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any

import click
import yaml
from rich.console import Console

from tutti.api.failures import Refusal
from tutti.api.flags import files_flag, report_flag, scheduler_names_flag
from tutti.api.output import echo_json
from tutti.explain.understanding import understand
from tutti.explain.view import show
from tutti.fits.expansion import flattened


@click.command()
@files_flag("Manifest file; - for standard input; repeatable.")
@click.option("--namespace", "-n", default="default", show_default=True, metavar="NAME")
@scheduler_names_flag("Scheduler names that Tutti serves in this cluster; repeatable.")
@report_flag
def explain_dialect(
    *, files: Sequence[IO[str]], namespace: str, scheduler_names: tuple[str, ...], output: str
) -> None:
    """Explain how Tutti understands manifests: the gang of each object, with its members, minimum,
    queue and topology; which dialect reads it; whether Tutti schedules its pods, and what is
    missing for that; what has no effect, and why.

    The files are read by the functions that read objects in a cluster. No cluster is asked, so all
    APIs count as installed, and of all namespaces only those in the files as opted in.

    Exits with status 0 when Tutti schedules every gang as it stands, 1 when something is missing, 2
    when a file cannot be read.
    """
    try:
        documents = [one for file in files for one in _documents(file)]
    except Refusal as error:
        click.echo(f"tutti: {error}", err=True)
        sys.exit(2)
    report = understand(documents, namespace=namespace, scheduler_names=scheduler_names)
    if output == "json":
        echo_json(report)
    else:
        show(report, Console())
    complete = all(one.scheduled for one in report.gangs)
    sys.exit(0 if complete and not any(one.missing for one in report.objects) else 1)


def _documents(file: IO[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file, with their places in it. Raises Refusal."""
    try:
        for where, one in flattened(yaml.safe_load_all(file.read())):
            yield f"{file.name}, {where.partition(',')[0]}", one
    except (yaml.YAMLError, UnicodeDecodeError, Refusal) as error:
        raise Refusal(f"{file.name}: {error}") from None
