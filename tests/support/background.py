"""A task that runs beside a test."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def in_background(
    work: Coroutine[Any, Any, None], *, name: str
) -> AsyncIterator[asyncio.Task[None]]:
    """Run `work` for as long as the block; leaving cancels it where it stands.

    Raises:
        Exception: the error that ended `work`.
    """
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()
