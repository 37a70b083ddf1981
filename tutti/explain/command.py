"""`tutti explain-dialect`: how manifests and objects of a cluster are understood."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

import click

from shared.dialects.manifests import InvalidManifest, flattened
from shared.explanation.report import Report
from shared.explanation.understanding import understand
from tutti.api.access import Access, open_namespace
from tutti.api.failures import Refusal, fail, run
from tutti.api.flags import access_flags, report_flag, scheduler_names_flag
from tutti.api.manifests import read_opened, title_of
from tutti.api.output import print_report
from tutti.explain.live_objects import (
    read_groups,
    read_namespace,
    read_object,
    read_tree_groups,
)
from tutti.explain.view import show
from tutti.terminal import report_console
from tutti.why.completion import complete_reference
from tutti.why.kinds import read_reference


@click.command()
@click.argument(
    "references",
    nargs=-1,
    metavar="[KIND/NAME]...",
    shell_complete=complete_reference,
)
@click.option(
    "--filename",
    "-f",
    "files",
    multiple=True,
    type=click.File("rb"),
    help="Manifest file; - for standard input; repeatable.",
)
@click.option(
    "--namespace",
    "-n",
    default="",
    metavar="NAME",
    help="Namespace; of files: default, of a cluster's objects: the context's.",
)
@access_flags
@scheduler_names_flag("Scheduler names that Tutti serves in this cluster; repeatable.")
@report_flag
def explain_dialect(
    *,
    references: tuple[str, ...],
    files: Sequence[IO[bytes]],
    namespace: str,
    access: Access,
    scheduler_names: tuple[str, ...],
    output: str,
) -> None:
    """Explain how Tutti understands manifests, or objects of a cluster: the gang of each object,
    with its members, minimum, queue and topology; which dialect reads it; whether Tutti schedules
    its pods, and what is missing for that; what has no effect, and why.

    The files are read by the functions that read objects in a cluster. For files no cluster is
    asked, so all APIs count as installed, and of all namespaces only those in the files as opted
    in. KIND/NAME is an object of the cluster, which is read with the group objects that its pods
    name, the other groups of their tree, and its namespace.

    Exits with status 0 when Tutti schedules every gang as it stands, 1 when something is missing, 2
    when a file or an object cannot be read.
    """
    if bool(files) == bool(references):
        raise click.UsageError("give files with -f, or objects as KIND/NAME")
    if references:
        report = run(_live(access, namespace, references, scheduler_names), status=2)
    else:
        try:
            documents = [one for file in files for one in _documents(file)]
        except Refusal as error:
            click.echo(f"tutti: {error}", err=True)
            sys.exit(2)
        if not documents:
            fail("there must be an object in the files", 2)
        report = understand(
            documents, namespace=namespace or "default", scheduler_names=scheduler_names
        )
    print_report(report, output, lambda: show(report, report_console()))
    sys.exit(0 if report.complete else 1)


async def _live(
    access: Access,
    given_namespace: str,
    references: Iterable[str],
    scheduler_names: tuple[str, ...],
) -> Report:
    """The report on objects of a cluster. Raises Refusal and KubeError."""
    async with open_namespace(access, given_namespace) as (client, namespace):
        places: list[tuple[str, dict[str, Any]]] = []
        for reference in references:
            word, name = read_reference((reference,))
            places.append((reference, await read_object(client, namespace, word, name)))
        own = [await read_namespace(client, namespace)]

        def report() -> Report:
            return understand(
                places,
                namespace=namespace,
                scheduler_names=scheduler_names,
                namespaces=own,
                stored=True,
            )

        def add(groups: Iterable[dict[str, Any]]) -> None:
            given = {one["metadata"].get("uid") for _, one in places}
            places.extend(
                (f"{group['kind'].lower()}/{group['metadata']['name']}", group)
                for group in groups
                if group["metadata"].get("uid") not in given
            )

        names = [gang.title.partition("/")[2] for gang in report().gangs]
        add(await read_groups(client, namespace, names))
        found = report()
        if not any(gang.parts for gang in found.gangs):
            return found
        known = len(places)
        add(await read_tree_groups(client, namespace))
        objects = report().objects
        gangs = {title for one in objects[:known] for title in one.gangs}
        # Of the groups of other trees nothing is reported.
        added = zip(places[known:], objects[known:], strict=True)
        places[known:] = [place for place, one in added if gangs.intersection(one.gangs)]
        return report()


def _documents(file: IO[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file, with their places in it. Raises Refusal."""
    title = title_of(file)
    try:
        for where, one in flattened(read_opened(file, title)):
            yield f"{title}, {where.partition(',')[0]}", one
    except InvalidManifest as error:
        raise Refusal(f"{title}: {error}") from None
