"""The pages of the queue ledger, read on a real server."""

import pytest

from shared.bus.connection import Bus
from shared.bus.errors import NoAnswer
from shared.bus.questions import ask_ledger, serve
from shared.contracts import codec
from shared.contracts.questions import LedgerAnswer, LedgerQueue, LedgerRequest, LedgerTotal
from shared.contracts.subjects import ASK_LEDGER
from tests.shared.bus.conftest import ConnectBus

QUEUES = tuple(LedgerQueue(name=f"q{number}", exists=True) for number in range(5))


async def answer_pages(bus: Bus, size: int) -> None:
    async def answer(question: LedgerRequest) -> LedgerAnswer:
        left = [one for one in QUEUES if one.name > question.after]
        page = tuple(left[:size])
        totals = (LedgerTotal(resource=page[0].name, total=1, usable=1),)
        return LedgerAnswer(queues=page, totals=totals, more=len(left) > size)

    await serve(bus, ASK_LEDGER, codec.decode_ledger_request, answer)


async def test_all_pages_become_one_ledger(connect: ConnectBus) -> None:
    bus = await connect()
    await answer_pages(bus, 2)
    ledger = await ask_ledger(bus, timeout_s=10.0)
    assert ledger.queues == QUEUES
    assert [one.resource for one in ledger.totals] == ["q0", "q2", "q4"]
    assert not ledger.more


async def test_a_planner_of_an_older_version_answers_all_queues_at_once(
    connect: ConnectBus,
) -> None:
    bus = await connect()
    await answer_pages(bus, 5)
    assert (await ask_ledger(bus, timeout_s=10.0)).queues == QUEUES


async def test_pages_that_do_not_go_on_are_no_answer(connect: ConnectBus) -> None:
    bus = await connect()

    async def answer(_: LedgerRequest) -> LedgerAnswer:
        return LedgerAnswer(queues=QUEUES, more=True)

    await serve(bus, ASK_LEDGER, codec.decode_ledger_request, answer)
    with pytest.raises(NoAnswer, match="no further queue"):
        await ask_ledger(bus, timeout_s=10.0)
