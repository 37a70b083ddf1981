"""The commands that every kind has: `list`, `get`, `describe`, `create`, `delete`."""

from collections.abc import Callable
from typing import Final, Literal

import click
import msgspec

from shared.kube.resources import Resource
from tutti.api import flags, manifests
from tutti.api.access import Access, open_client
from tutti.api.failures import Refusal, run
from tutti.api.fetches import Wanted, fetch, get
from tutti.api.listing import Listing, list_kind, listing_flags
from tutti.api.objects import Object, name_of, namespace_of, without_managed_fields
from tutti.api.output import NOTHING, Format, as_json, as_yaml, echo
from tutti.api.tables import Layout

_RULE: Final = "---------------------------------"


class ListedKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind and its table.

    Attributes:
        resource: The kind.
        layout: Its table; the argument is whether it may have several namespaces.
    """

    resource: Resource
    layout: Callable[[bool], Layout]

    @property
    def word(self) -> str:
        """Its name in messages: "jobflow"."""
        return self.resource.kind.lower()


def add_read_commands(group: click.Group, kind: ListedKind) -> None:
    """Add `list`, `get` and `describe` to the group."""
    title = kind.resource.kind

    @group.command("list", help=f"List {title}s.")
    @listing_flags()
    def list_(*, listing: Listing) -> None:
        run(list_kind(kind.resource, kind.layout, listing))

    @group.command("get", help=f"Show one {title} as `list` does.")
    @flags.namespace_flag()
    @flags.name_flag(title)
    @flags.output_flag()
    @flags.watch_flag
    @flags.names_argument(kind.resource)
    @flags.access_flags
    def get_(
        *,
        access: Access,
        namespace: str,
        name: str,
        output: Format,
        watch: bool,
        names: tuple[str, ...],
    ) -> None:
        listing = Listing(access=access, namespace=namespace, output=output, watch=watch)
        run(_get(kind, listing, name, names))

    @group.command("describe", help=f"Show whole {title}s: the ones named, or all of them.")
    @flags.namespace_flag()
    @flags.name_flag(title)
    @click.option(
        "--format",
        "-o",
        "output",
        type=click.Choice(["yaml", "json"]),
        default="yaml",
        show_default=True,
    )
    @flags.names_argument(kind.resource)
    @flags.access_flags
    def describe(
        *,
        access: Access,
        namespace: str,
        name: str,
        output: Literal["yaml", "json"],
        names: tuple[str, ...],
    ) -> None:
        chosen = (*([name] if name else []), *names)
        run(_describe(kind, access, namespace, chosen, output))


def add_write_commands(group: click.Group, kind: ListedKind) -> None:
    """Add `create` and `delete` to the group."""
    title = kind.resource.kind

    @group.command("create", help=f"Create {title}s from manifests.")
    @flags.namespace_flag()
    @_files_flag(required=True)
    @flags.access_flags
    def create(*, access: Access, namespace: str, files: tuple[str, ...]) -> None:
        run(_create(kind, access, namespace, files))

    @group.command("delete", help=f"Delete {title}s by name, or those of manifests.")
    @flags.namespace_flag()
    @flags.name_flag(title)
    @_files_flag(required=False)
    @flags.names_argument(kind.resource)
    @flags.access_flags
    def delete(
        *,
        access: Access,
        namespace: str,
        name: str,
        files: tuple[str, ...],
        names: tuple[str, ...],
    ) -> None:
        run(_delete(kind, access, namespace, name, names, files))


def _files_flag(*, required: bool) -> Callable[[flags.F], flags.F]:
    return click.option(
        "--file",
        "--filename",
        "-f",
        "files",
        multiple=True,
        required=required,
        metavar="FILE",
        help="Manifest file; - for standard input; repeatable.",
    )


async def _get(kind: ListedKind, listing: Listing, name: str, names: tuple[str, ...]) -> None:
    chosen = flags.required_name(kind.word, name, names)
    await list_kind(kind.resource, kind.layout, listing, chosen)


async def _describe(
    kind: ListedKind, access: Access, namespace: str, names: tuple[str, ...], output: str
) -> None:
    async with open_client(access) as client:
        place = flags.namespace_or_default(namespace, client.credentials.namespace)
        if names:
            found = [await get(client, kind.resource, each, place) for each in names]
        else:
            found = await fetch(client, Wanted(resource=kind.resource, namespace=place))
    if not found:
        echo(NOTHING)
    for index, each in enumerate(found):
        if index:
            echo(_RULE)
        whole = without_managed_fields(each)
        echo(as_json(whole) if output == "json" else as_yaml(whole))


async def _create(kind: ListedKind, access: Access, namespace: str, files: tuple[str, ...]) -> None:
    found = manifests.read(files, kind.resource)
    async with open_client(access) as client:
        place = flags.namespace_or_default(namespace, client.credentials.namespace)
        await manifests.create_all(client, kind.resource, found, place)


async def _delete(
    kind: ListedKind,
    access: Access,
    namespace: str,
    name: str,
    names: tuple[str, ...],
    files: tuple[str, ...],
) -> None:
    found: list[Object] = manifests.read(files, kind.resource) if files else []
    if not files:
        names = flags.required_names(kind.word, name, names)
    elif name or names:
        raise Refusal("give either names or --file")
    async with open_client(access) as client:
        place = flags.namespace_or_default(namespace, client.credentials.namespace)
        keys = [(namespace_of(each) or place, name_of(each)) for each in found]
        await manifests.delete_all(client, kind.resource, keys or [(place, each) for each in names])
