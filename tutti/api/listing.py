"""`list` and `get` of any kind, and the changes that `--watch` adds."""

from collections.abc import Callable, Sequence

import msgspec

from shared.kube.client import KubeClient
from shared.kube.resources import Resource
from tutti.api import flags
from tutti.api.access import Access, open_namespace
from tutti.api.failures import Refusal
from tutti.api.fetches import Wanted, fetch, follow, get
from tutti.api.flags import Flag, split_selector
from tutti.api.objects import Object, name_of
from tutti.api.output import Format, Printer
from tutti.api.tables import Layout


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of a `list`.

    Attributes:
        access: The user.
        namespace: As given; "" for the default one.
        everywhere: In all namespaces.
        selector: As given.
        labels: A label selector of the command's own.
        output: The format.
        watch: Whether to print changes after the list.
        keep: A filter that the API server cannot apply.
    """

    access: Access
    namespace: str = ""
    everywhere: bool = False
    selector: str = ""
    labels: str = ""
    output: Format = "table"
    watch: bool = False
    keep: Callable[[Object], bool] = lambda _: True


def listing_flags(*filters: Flag, namespace_letter: str = "-n") -> Flag:
    """Every flag of a `list`, given to the function as `listing`.

    Args:
        filters: Flags of the command's own, which the function gets as they are.
        namespace_letter: The short form of `--namespace`.
    """
    return flags.gathered(
        Listing,
        "listing",
        flags.namespace_flag(namespace_letter),
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
    """Print the objects of a kind, or a single one.

    Args:
        resource: The kind.
        layout: Its table; the argument is whether it may have several namespaces.
        listing: The flags.
        name: Name of one object; "" for all.

    Raises:
        Refusal: A name and all namespaces were given.
        KubeError: The API server refuses, or does not answer.
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
            found = await fetch(client, _wanted(resource, place, listing))
            printer.all(kept(found, listing))


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
