"""Cases that do not get in each other's way, played at the same time: most of a case is waiting."""

import asyncio
from collections.abc import Coroutine, Mapping


async def all_hold(cases: Mapping[str, Coroutine[object, object, None]]) -> None:
    """Play cases at once.

    Raises:
        AssertionError: some do not hold; the message has all of these, by name.
    """
    found = await asyncio.gather(*cases.values(), return_exceptions=True)
    failed = {
        name: error
        for name, error in zip(cases, found, strict=True)
        if isinstance(error, BaseException)
    }
    lines = "\n".join(f"{name}: {error!r}" for name, error in failed.items())
    assert not failed, f"{len(failed)} of {len(cases)} do not hold:\n{lines}"
