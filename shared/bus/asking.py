"""Typed questions over plain requests: serve them, ask one, ask everybody."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from shared.bus.connection import Bus, Subscription

Question = TypeVar("Question")
Answer = TypeVar("Answer")


async def serve(
    bus: Bus,
    subject: str,
    decode: Callable[[bytes], Question],
    answer: Callable[[Question], Awaitable[msgspec.Struct | None]],
    *,
    queue: str = "",
) -> Subscription:
    """Answer questions on `subject` (each in turn); None: stay silent. A question that does not decode is dropped."""
    raise NotImplementedError


async def ask(
    bus: Bus,
    subject: str,
    question: msgspec.Struct,
    decode: Callable[[bytes], Answer],
    *,
    timeout_s: float,
) -> Answer:
    """Ask one: the first answer counts.

    Raises:
        NoAnswer: Nobody listens, nobody answered in time, or the answer did not decode.
    """
    raise NotImplementedError


async def ask_all(
    bus: Bus,
    subject: str,
    question: msgspec.Struct,
    decode: Callable[[bytes], Answer],
    *,
    wait_s: float,
    answers_max: int = 1000,
) -> list[Answer]:
    """Ask everybody who listens and return what came within `wait_s`; nobody: an empty list."""
    raise NotImplementedError
