"""`tutti explain-dialect`: how manifests and objects of a cluster are understood.

`shared.explanation` makes the report. Of a cluster, each object is read with the rights of the
user, and beside it the group objects of the gangs that it names, all groups that may be in trees if
one of these is, and whether its namespace has opted in. What the user may not read counts as
absent. Nothing is written.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.text import Text

from shared.contracts.visibility import ExplainedGang, ExplainedObject, ExplanationStatus
from shared.dialects.discovery import group_resources, kinds
from shared.dialects.manifests import InvalidManifest, flattened
from shared.dialects.protocol import JsonObject
from shared.explanation.understanding import understand
from shared.kube.client import KubeClient
from shared.kube.decoding import without_nulls
from shared.kube.errors import Forbidden, NotFound
from shared.kube.resources import NAMESPACES, Resource
from tutti.api.access import Access, open_namespace
from tutti.api.failures import Refusal, run
from tutti.api.fetches import Wanted, at_once, fetch, get
from tutti.api.flags import (
    access_flags,
    files_flag,
    namespace_flag,
    report_flag,
    scheduler_names_flag,
)
from tutti.api.manifests import Content
from tutti.api.output import print_report
from tutti.terminal import print_line, report_console
from tutti.why.kinds import complete_reference, find_object, read_reference, resolve

#: Fields that say nothing about how an object is understood.
_LEFT_OUT: Final = ("managedFields", "resourceVersion", "generation", "selfLink")


async def read_groups(client: KubeClient, namespace: str, names: Iterable[str]) -> list[JsonObject]:
    """The group objects of these names, of every API that is served.

    Raises:
        KubeError: A request failed.
    """
    resources = [variant for resource in group_resources() for variant in resource.variants]
    return [
        group
        for name in sorted(set(names))
        for group in await _named(client, namespace, resources, name)
    ]


async def read_tree_groups(client: KubeClient, namespace: str) -> list[JsonObject]:
    """All group objects of the APIs that have trees of groups.

    Raises:
        KubeError: A request failed.
    """
    of_groups = [kind.resource for kind in kinds() if kind.of_groups]
    apis = {resource.group for resource in of_groups}
    of_pods = [resource for resource in group_resources() if resource.group in apis]
    return [
        group
        for resource in (*of_groups, *of_pods)
        for group in await _all(client, resource, namespace)
    ]


async def read_namespace(client: KubeClient, namespace: str) -> JsonObject:
    """The namespace; without labels if the user may not read it.

    Raises:
        KubeError: A request failed.
    """
    try:
        return _stripped(NAMESPACES, await get(client, NAMESPACES, namespace))
    except (NotFound, Forbidden):
        return {"kind": NAMESPACES.kind, "metadata": {"name": namespace}}


async def _named(
    client: KubeClient, namespace: str, resources: Sequence[Resource], name: str
) -> list[JsonObject]:
    """The objects of this name, each in the first version in which it is served."""
    objects = await at_once(resources, lambda resource: _get(client, resource, namespace, name))
    by_uid: dict[str, JsonObject] = {}
    for obj in objects.values():
        if obj is not None:
            by_uid.setdefault(str(obj["metadata"].get("uid")), obj)
    return list(by_uid.values())


async def _get(
    client: KubeClient, resource: Resource, namespace: str, name: str
) -> JsonObject | None:
    try:
        return _stripped(resource, await get(client, resource, name, namespace))
    except (NotFound, Forbidden):
        return None


async def _all(client: KubeClient, resource: Resource, namespace: str) -> list[JsonObject]:
    """All objects of a kind in the first version in which it is served; [] if it is in none."""
    for variant in resource.variants:
        try:
            objects = await fetch(client, Wanted(resource=variant, namespace=namespace))
        except (NotFound, Forbidden):
            continue
        return [_stripped(variant, obj) for obj in objects]
    return []


def _stripped(resource: Resource, obj: JsonObject) -> JsonObject:
    kept = {key: value for key, value in obj.items() if key != "status"}
    kept |= {"apiVersion": resource.api_version, "kind": resource.kind}
    kept["metadata"] = {
        key: value for key, value in obj["metadata"].items() if key not in _LEFT_OUT
    }
    plain: JsonObject = without_nulls(kept)
    return plain


_OBJECT_WIDTH = 9
_GANG_WIDTH = 11


def show(report: ExplanationStatus, console: Console) -> None:
    """Print it; in colour where the console has colours."""
    for explained in report.objects:
        print_line(console, Text(f"{explained.place}: {explained.title}", style="bold"))
        _rows(console, _of_object(explained), _OBJECT_WIDTH)
    for gang in report.gangs:
        colour = "green" if gang.scheduled else "yellow"
        words = "Tutti schedules it" if gang.scheduled else "Tutti does not schedule all of it"
        print_line(console, Text(f"\ngang {gang.title}: {words}", style=f"bold {colour}"))
        _rows(console, _of_gang(gang), _GANG_WIDTH)


def _rows(console: Console, rows: Iterator[tuple[str, str]], width: int) -> None:
    for label, value in rows:
        style = "yellow" if label == "missing" else ""
        print_line(console, Text.assemble("  ", (label.ljust(width), "dim"), "  ", (value, style)))


def _of_object(explained: ExplainedObject) -> Iterator[tuple[str, str]]:
    yield from (("gang", title) for title in explained.gangs)
    yield from (("read", fact) for fact in explained.facts)
    for place in explained.declared:
        by = f" (dialect {place.dialect})" if place.dialect else ""
        yield "declares", f"{place.place}: {place.value}{by}: {place.sentence}"
    yield from (
        ("scheduler", f"{name.scheduler}: {name.sentence}") for name in explained.scheduling
    )
    yield from (("missing", text) for text in explained.missing)
    yield from (("ignored", text) for text in explained.ignored)


def _of_gang(gang: ExplainedGang) -> Iterator[tuple[str, str]]:
    yield "declared by", gang.declared_by
    minimum = "not known" if gang.minimum is None else str(gang.minimum)
    yield "members", f"{gang.members} among these objects, minimum {minimum}"
    for role in gang.roles:
        least = f", minimum {role.minimum}" if role.minimum else ""
        yield "role", f"{role.role}: {role.members}{least}"
    for part in gang.parts:
        where = f", {part.topology}" if part.topology else ""
        name = f"{'  ' * (part.level - 1)}{part.name}"
        yield "group", f"{name}: {part.count} {part.of}, minimum {part.minimum}{where}"
    yield "queue", gang.queue
    if gang.priority_class:
        yield "priority", gang.priority_class
    if gang.topology:
        yield "topology", gang.topology
    if gang.run_limit:
        yield "run limit", gang.run_limit
    yield from (("missing", text) for text in gang.missing)
    yield from (("ignored", text) for text in gang.ignored)


@click.command()
@click.argument(
    "references",
    nargs=-1,
    metavar="[KIND/NAME]...",
    shell_complete=complete_reference,
)
@files_flag(required=False)
@namespace_flag("Namespace; of files: default, of a cluster's objects: the context's.")
@access_flags
@scheduler_names_flag("Scheduler names that Tutti serves in this cluster; repeatable.")
@report_flag
def explain_dialect(
    *,
    references: tuple[str, ...],
    files: Sequence[Content],
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
        report = run(_live(access, namespace, references, scheduler_names))
    else:
        report = run(_of_files(files, namespace, scheduler_names))
    data = {"objects": _whole(report.objects), "gangs": _whole(report.gangs)}
    print_report(data, output, lambda: show(report, report_console()))
    sys.exit(0 if report.complete else 1)


def _whole(value: object) -> object:
    """With all fields: the API leaves out those that have their defaults."""
    match value:
        case msgspec.Struct():
            fields = msgspec.structs.fields(value)
            return {each.encode_name: _whole(getattr(value, each.name)) for each in fields}
        case tuple():
            return [_whole(each) for each in value]
        case _:
            return value


async def _of_files(
    files: Sequence[Content], namespace: str, scheduler_names: tuple[str, ...]
) -> ExplanationStatus:
    documents = [document for file in files for document in _documents(file)]
    if not documents:
        raise Refusal("there must be an object in the files")
    return understand(documents, namespace=namespace or "default", scheduler_names=scheduler_names)


async def _live(
    access: Access,
    given_namespace: str,
    references: Iterable[str],
    scheduler_names: tuple[str, ...],
) -> ExplanationStatus:
    """The report on objects of a cluster. Raises Refusal and KubeError."""
    async with open_namespace(access, given_namespace) as (client, namespace):
        places: list[tuple[str, dict[str, Any]]] = []
        for reference in references:
            word, name = read_reference((reference,))
            resources, _ = await resolve(client, word)
            resource, obj = await find_object(client, namespace, resources, name)
            places.append((reference, _stripped(resource, obj)))
        own = [await read_namespace(client, namespace)]

        def report() -> ExplanationStatus:
            return understand(
                places,
                namespace=namespace,
                scheduler_names=scheduler_names,
                namespaces=own,
                stored=True,
            )

        def add(groups: Iterable[dict[str, Any]]) -> None:
            given = {obj["metadata"].get("uid") for _, obj in places}
            places.extend(
                (f"{group['kind'].lower()}/{group['metadata']['name']}", group)
                for group in groups
                if group["metadata"].get("uid") not in given
            )

        names = [gang.title.partition("/")[2] for gang in report().gangs]
        add(await read_groups(client, namespace, names))
        understood = report()
        if not any(gang.parts for gang in understood.gangs):
            return understood
        known = len(places)
        add(await read_tree_groups(client, namespace))
        objects = report().objects
        gangs = {title for explained in objects[:known] for title in explained.gangs}
        # Of the groups of other trees nothing is reported.
        added = zip(places[known:], objects[known:], strict=True)
        places[known:] = [
            place for place, explained in added if gangs.intersection(explained.gangs)
        ]
        return report()


def _documents(file: Content) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file, with their places in it. Raises Refusal."""
    try:
        for where, document in flattened(file.documents()):
            yield f"{file.title}, {where.partition(',')[0]}", document
    except InvalidManifest as error:
        raise Refusal(f"{file.title}: {error}") from None
