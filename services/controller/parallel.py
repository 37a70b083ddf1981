"""Requests for many objects, a few at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from shared.kube.errors import ApiError, KubeError

T = TypeVar("T")


async def for_all(
    do: Callable[[T], Awaitable[None]], things: Iterable[T], *, at_once: int, name: str
) -> None:
    """Call `do` for all things, `at_once` at a time, in tasks called `name`, until the first error.

    Raises:
        KubeError: One of the errors; an answer of the API server only if there is no other error.
    """
    left = iter(things)
    errors: list[KubeError] = []

    async def work() -> None:
        for thing in left:
            if errors:
                return
            try:
                await do(thing)
            except KubeError as error:
                errors.append(error)

    async with asyncio.TaskGroup() as group:
        for number in range(at_once):
            group.create_task(work(), name=f"{name}-{number}")
    if errors:
        raise next((one for one in errors if not isinstance(one, ApiError)), errors[0])
