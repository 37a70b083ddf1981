"""Completes `[KIND/]NAME` in a shell: names of the kind, or without one of Jobs and groups."""

import asyncio
from typing import Final

import click

from shared.kube.resources import JOBS_VOLCANO, PODGROUPS_VOLCANO
from tutti.api.flags import Completion, completed_by, completing_client, names_of
from tutti.why.kinds import resolve

#: The user waits for it after pressing Tab; a kind needs discovery first.
_PATIENCE_S: Final = 4.0


async def _references(ctx: click.Context, begun: str) -> list[str]:
    word, slash, _ = begun.partition("/")
    async with asyncio.timeout(_PATIENCE_S), completing_client(ctx) as client:
        if not slash:
            return await names_of((JOBS_VOLCANO, PODGROUPS_VOLCANO), client, ctx)
        resources, _ = await resolve(client, word)
        return [f"{word}/{name}" for name in await names_of(resources, client, ctx)]


complete_reference: Completion = completed_by(_references)
