"""Waiting in integration tests: poll a condition with a deadline, and say what was last seen."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast, overload

Seen = TypeVar("Seen")

POLL_S = 0.02
#: Long for what takes a second: it is only waited for where the test fails.
TIMEOUT_S = 20.0
#: What a probe raises that reads an object of which a part is not written yet.
NOT_YET = (AssertionError, LookupError, ValueError)


@overload
async def eventually(
    probe: Callable[[], Awaitable[Seen]],
    *,
    timeout_s: float = ...,
    because: str = ...,
    poll_s: float = ...,
) -> Seen: ...
@overload
async def eventually(
    probe: Callable[[], Seen],
    *,
    timeout_s: float = ...,
    because: str = ...,
    poll_s: float = ...,
) -> Seen: ...
async def eventually(
    probe: Callable[[], Seen | Awaitable[Seen]],
    *,
    timeout_s: float = TIMEOUT_S,
    because: str = "",
    poll_s: float = POLL_S,
) -> Seen:
    """Call ``probe`` until it returns something true, and return that.

    A probe may also assert, and read what may not be there yet: an AssertionError counts as "not
    yet", and so does a missing key or one of too many or too few. Any other exception passes
    through at once.

    Args:
        probe: A function, plain or async, without arguments.
        timeout_s: How long to continue; the deadline also interrupts an async probe that hangs.
        because: What is waited for, for the message.
        poll_s: How long to wait between two calls; more where many waits share a machine.

    Raises:
        AssertionError: The deadline passed; the message holds the last value or failed assertion.
    """
    last: object = "nothing: the first probe did not return"
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            while True:
                try:
                    answer = probe()
                    seen = cast("Seen", await answer if inspect.isawaitable(answer) else answer)
                except NOT_YET as not_yet:
                    last = not_yet
                else:
                    if seen:
                        return seen
                    last = seen
                await asyncio.sleep(poll_s)
    except TimeoutError:
        if not deadline.expired():  # The probe's own: not ours to hide.
            raise
        raise AssertionError(
            f"not within {timeout_s} s: {because or probe}; last seen: {last!r}"
        ) from None
