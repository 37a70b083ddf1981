"""Starts an operator's program and stops it, whatever its command line is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tests.controlplane.processes import Component
from tests.support.waiting import eventually

START_S: Final = 60.0


@asynccontextmanager
async def started(component: Component, works: str, *, times: int = 1) -> AsyncIterator[Component]:
    """Run it until the block is left; it yields once the log has the words `works` so many times:
    once for each controller.
    """
    try:
        await asyncio.to_thread(component.start)
        await wait_at_work(component, works, times=times)
        yield component
    finally:
        await asyncio.to_thread(component.stop)


async def wait_at_work(component: Component, works: str, *, times: int = 1) -> None:
    """Wait until the log has the words `works` so many times."""
    await eventually(
        lambda: component.log_path.read_text().count(works) >= times,
        timeout_s=START_S,
        because=f"{component.name}'s controllers work",
    )
