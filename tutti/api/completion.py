"""Completes names of objects in the shell; without an answer of the API server, with nothing."""

import asyncio
from collections.abc import Callable
from typing import Final

import click
from click.shell_completion import CompletionItem

from shared.kube.resources import Resource
from tutti.api.access import Access, open_client
from tutti.api.conventions import conventions
from tutti.api.fetches import Wanted, fetch
from tutti.api.objects import name_of

#: Timeout of a completion: the user waits for it after pressing Tab.
_PATIENCE_S: Final = 2.0

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completion(resource: Resource) -> Completion:
    """Complete names of one kind, in the namespace of the flags before them."""

    def complete(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
        try:
            names = asyncio.run(_names(resource, ctx))
        except Exception:  # noqa: BLE001 - a completion has no place for a message
            return []
        return [CompletionItem(name) for name in names if name.startswith(begun)]

    return complete


async def _names(resource: Resource, ctx: click.Context) -> list[str]:
    typed = ctx.params
    access = Access(
        kubeconfig=typed.get("kubeconfig") or "",
        context=typed.get("context") or "",
        server=typed.get("master") or "",
    )
    async with asyncio.timeout(_PATIENCE_S), open_client(access) as client:
        default = conventions(ctx).namespace or client.credentials.namespace
        place = (typed.get("namespace") or default) if resource.namespaced else ""
        return [
            name_of(each)
            for each in await fetch(client, Wanted(resource=resource, namespace=place))
        ]
