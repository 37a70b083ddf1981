"""`tutti queues` against a real nats-server, with a responder in the standby's place."""

import asyncio
import json

import pytest
from click.testing import CliRunner, Result

from services.api.core.openapi import openapi_document
from shared.bus.connection import Bus
from shared.bus.questions import serve
from shared.contracts import codec, subjects
from shared.contracts.questions import LedgerAmount, LedgerAnswer, LedgerQueue, LedgerRequest
from tests.services.api.conformity import violations
from tutti.nats_server import NatsServer
from tutti.queues_command import queues

pytestmark = pytest.mark.integration

ANSWER = LedgerAnswer(
    queues=(
        LedgerQueue(name="a", exists=True, amounts=(LedgerAmount(resource="cpu", used=4000),)),
        LedgerQueue(name="b", exists=True, why="its gangs wait for capacity"),
    )
)


async def typed(server: NatsServer, *words: str, answers: bool = True) -> Result:
    """Run the command in a thread, as it has a loop of its own."""

    async def answer(question: LedgerRequest) -> LedgerAnswer:
        assert question == LedgerRequest()
        return ANSWER

    bus = await Bus.connect(server.url, name="test")
    try:
        if answers:
            await serve(bus, subjects.ASK_LEDGER, codec.decode_ledger_request, answer)
        arguments = ["--nats", server.url, *words]
        return await asyncio.to_thread(CliRunner().invoke, queues, arguments)
    finally:
        await bus.close()


async def test_what_the_standby_answers_is_shown_as_a_table_and_as_json(
    nats_server: NatsServer,
) -> None:
    table = await typed(nats_server)
    assert table.exit_code == 0, table.output
    assert "b: its gangs wait for capacity" in table.output
    one = await typed(nats_server, "-o", "json", "a")
    assert one.exit_code == 0, one.output
    found = json.loads(one.output)
    assert violations(openapi_document(), "QueueList", found) == []
    assert [queue["metadata"]["name"] for queue in found["items"]] == ["a"]
    assert found["items"][0]["status"]["resources"][0]["used"] == "4"
    loud = await typed(nats_server, "-v", "1", "-o", "name")
    assert loud.stderr == "tutti: asks NATS, as a flag chooses it\n"
    assert loud.stdout.splitlines() == [f"queue.visibility.tutti.dev/{name}" for name in "ab"]


async def test_a_queue_that_is_unknown_and_a_standby_that_is_away_end_with_status_2(
    nats_server: NatsServer,
) -> None:
    unknown = await typed(nats_server, "c")
    assert (unknown.exit_code, unknown.output) == (2, "tutti: no queue c\n")
    away = await typed(nats_server, answers=False)
    assert (away.exit_code, away.output) == (2, "tutti: no standby planner answers\n")
