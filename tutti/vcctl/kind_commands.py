"""The commands that every kind has: `list`, `get`, `describe`, `create`, `delete`."""

from collections.abc import Callable, Sequence
from typing import Final, Literal

import click
import msgspec

from shared.kube.client import KubeClient
from shared.kube.resources import Resource
from tutti.api import flags, manifests
from tutti.api.access import Access, open_namespace
from tutti.api.failures import Refusal, run, running
from tutti.api.fetches import Wanted, fetch, follow, get
from tutti.api.flags import Flag, Selection, split_selector
from tutti.api.manifests import Content
from tutti.api.objects import Object, name_of, namespace_of, without_managed_fields
from tutti.api.output import Format, Layout, Printer, as_json, as_yaml, echo, echo_nothing


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of a `list`."""

    access: Access
    namespace: str = ""
    everywhere: bool = False
    selector: str = ""
    #: A label selector of the command's own.
    labels: str = ""
    output: Format = "text"
    watch: bool = False
    #: A filter that the API server cannot apply.
    keep: Callable[[Object], bool] = lambda _: True


def listing_flags(*filters: Flag, namespace_letter: str = "-n") -> Flag:
    """The flags of a `list`, given to the function as `listing`, and `filters` of its own."""
    return flags.gathered(
        Listing,
        "listing",
        flags.namespace_flag(letter=namespace_letter),
        flags.everywhere_flag,
        *filters,
        flags.selector_flag,
        flags.output_flag(),
        flags.watch_flag,
        flags.access_flags,
    )


async def list_kind(
    resource: Resource, layout: Callable[[bool], Layout], listing: Listing, name: str = ""
) -> None:
    """Print the objects of a kind, or the one with a name.

    The argument of `layout` is whether the table may have several namespaces. Raises KubeError, and
    Refusal for a name in all namespaces.
    """
    if name and listing.everywhere:
        raise Refusal(f"{name!r} in all namespaces: give its namespace (-n)")
    printer = Printer(resource, layout(listing.everywhere), listing.output)
    async with open_namespace(listing.access, listing.namespace) as (client, default):
        place = "" if listing.everywhere or not resource.namespaced else default
        if listing.watch:
            await _watch(client, _wanted(resource, place, listing, name), listing, printer)
        elif name:
            printer.one(await get(client, resource, name, place))
        else:
            objects = await fetch(client, _wanted(resource, place, listing))
            printer.all(kept(objects, listing))


def kept(objects: Sequence[Object], listing: Listing) -> list[Object]:
    _, part = split_selector(listing.selector)
    return [each for each in objects if part in name_of(each) and listing.keep(each)]


def _wanted(resource: Resource, place: str, listing: Listing, name: str = "") -> Wanted:
    labels, _ = split_selector(listing.selector)
    return Wanted(
        resource=resource,
        namespace=place,
        label_selector=",".join(each for each in (listing.labels, labels) if each),
        field_selector=f"metadata.name={name}" if name else "",
    )


async def _watch(client: KubeClient, wanted: Wanted, listing: Listing, printer: Printer) -> None:
    async for _, obj in follow(client, wanted):
        if passed := kept([obj], listing):
            printer.more(passed)


_RULE: Final = "---------------------------------"


def kind_group(resource: Resource, layout: Callable[[bool], Layout]) -> flags.PflagGroup:
    """The group of a kind, with its commands; `layout` as in `list_kind`."""
    title = resource.kind
    help_ = f"List, create and delete {title}s of {resource.group}."
    group = flags.PflagGroup(title.lower(), help=help_)

    @group.command("list", help=f"List {title}s.")
    @listing_flags()
    def list_(*, listing: Listing) -> None:
        run(list_kind(resource, layout, listing))

    @group.command("get", help=f"Show one {title} as `list` does.")
    @flags.selection_flags(resource, flags.output_flag(), flags.watch_flag)
    @running()
    async def get_(*, selection: Selection, output: Format, watch: bool) -> None:
        listing = Listing(
            access=selection.access, namespace=selection.namespace, output=output, watch=watch
        )
        await list_kind(resource, layout, listing, selection.single(resource))

    @group.command("describe", help=f"Show whole {title}s: the ones named, or all of them.")
    @flags.selection_flags(
        resource,
        click.option(
            "--format",
            "-o",
            "output",
            type=click.Choice(["yaml", "json"]),
            default="yaml",
            show_default=True,
        ),
    )
    def describe(*, selection: Selection, output: Literal["yaml", "json"]) -> None:
        run(_describe(resource, selection, output))

    @group.command("create", help=f"Create {title}s from manifests.")
    @flags.namespace_flag()
    @flags.files_flag()
    @flags.access_flags
    @running()
    async def create(*, access: Access, namespace: str, files: Sequence[Content]) -> None:
        objects = manifests.read(files, resource)
        async with open_namespace(access, namespace) as (client, place):
            await manifests.create_all(client, resource, objects, place)

    @group.command("delete", help=f"Delete {title}s by name, or those of manifests.")
    @flags.selection_flags(resource, flags.files_flag(required=False))
    def delete(*, selection: Selection, files: Sequence[Content]) -> None:
        run(_delete(resource, selection, files))

    return group


async def _describe(resource: Resource, selection: Selection, output: str) -> None:
    async with selection.opened() as (client, place):
        if selection.all_names:
            objects = [await get(client, resource, each, place) for each in selection.all_names]
        else:
            objects = await fetch(client, Wanted(resource=resource, namespace=place))
    if not objects:
        echo_nothing()
    for index, each in enumerate(objects):
        if index:
            echo(_RULE)
        whole = without_managed_fields(each)
        echo(as_json(whole) if output == "json" else as_yaml(whole))


async def _delete(resource: Resource, selection: Selection, files: Sequence[Content]) -> None:
    names = () if files else selection.required(resource)
    objects: list[Object] = manifests.read(files, resource) if files else []
    if files and selection.all_names:
        raise Refusal("give either names or --file")
    async with selection.opened() as (client, place):
        keys = [(namespace_of(each) or place, name_of(each)) for each in objects]
        await manifests.delete_all(client, resource, keys or [(place, each) for each in names])
