"""The inbox hands over everything at once, keeps its order, and pushes back when it is full."""

import asyncio

from services.gang_planner.inbox import ARRIVALS_MAX, Arrival, Inbox, OutcomeArrival
from shared.contracts.outcomes import Outcome

_OUTCOME = Outcome(gang_id="g", decision_seq=1, epoch=1, binder="b", delivered=1)


def _arrivals(first: int, count: int) -> list[Arrival]:
    return [OutcomeArrival(seq, _OUTCOME, b"") for seq in range(first, first + count)]


async def test_everything_that_has_arrived_is_taken_in_one_go_and_in_order() -> None:
    inbox = Inbox()
    await inbox.put(_arrivals(1, 2))
    await inbox.put(_arrivals(3, 1))
    assert await inbox.take(None) == _arrivals(1, 3)


async def test_nothing_is_taken_after_the_timeout() -> None:
    assert await Inbox().take(0.0) == []


async def test_a_wake_ends_the_wait_without_an_arrival() -> None:
    inbox = Inbox()
    waiting = asyncio.create_task(inbox.take(None))
    inbox.wake()
    assert await waiting == []


async def test_a_full_inbox_makes_its_writer_wait_until_it_is_emptied() -> None:
    inbox = Inbox()
    await inbox.put(_arrivals(1, ARRIVALS_MAX))
    blocked = asyncio.create_task(inbox.put(_arrivals(ARRIVALS_MAX + 1, 1)))
    await asyncio.sleep(0)
    assert not blocked.done()
    assert len(await inbox.take(None)) == ARRIVALS_MAX
    await blocked
    assert await inbox.take(None) == _arrivals(ARRIVALS_MAX + 1, 1)
