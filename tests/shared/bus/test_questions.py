"""Typed questions on a real server."""

import pytest

from shared.bus.errors import NoAnswer
from shared.bus.questions import ask, ask_all, serve
from shared.contracts import codec
from shared.contracts.questions import ServiceStatus, StatusRequest
from shared.contracts.subjects import ASK_STATUS
from tests.shared.bus.conftest import ConnectBus


def status(instance: str) -> ServiceStatus:
    return ServiceStatus(
        service="binder", instance=instance, pid=1, version="1", http_port=1, ready=True
    )


async def test_every_subscriber_answers_a_broadcast(connect: ConnectBus) -> None:
    for name in ("a", "b", "c"):

        async def answer(_: StatusRequest, name: str = name) -> ServiceStatus:
            return status(name)

        await serve(await connect(name), ASK_STATUS, codec.decode_status_request, answer)
    asker = await connect()
    answers = await ask_all(
        asker, ASK_STATUS, StatusRequest(), codec.decode_status, wait_s=2.0, answers_max=3
    )
    assert sorted(one.instance for one in answers) == ["a", "b", "c"]


async def test_without_any_service_the_list_is_empty_at_once(connect: ConnectBus) -> None:
    asker = await connect()
    assert await ask_all(asker, ASK_STATUS, StatusRequest(), codec.decode_status, wait_s=30.0) == []


async def test_one_question_gets_its_typed_answer(connect: ConnectBus) -> None:
    bus = await connect()

    async def answer(_: StatusRequest) -> ServiceStatus:
        return status("x")

    await serve(bus, ASK_STATUS, codec.decode_status_request, answer)
    got = await ask(bus, ASK_STATUS, StatusRequest(), codec.decode_status, timeout_s=1.0)
    assert got == status("x")


async def test_a_question_that_does_not_decode_is_dropped_and_the_next_is_answered(
    connect: ConnectBus,
) -> None:
    bus = await connect()

    async def answer(_: StatusRequest) -> ServiceStatus:
        return status("x")

    await serve(bus, ASK_STATUS, codec.decode_status_request, answer)
    with pytest.raises(NoAnswer):
        await bus.request(ASK_STATUS, b"\xff nonsense", timeout_s=0.1)
    got = await ask(bus, ASK_STATUS, StatusRequest(), codec.decode_status, timeout_s=1.0)
    assert got == status("x")


async def test_an_answer_that_does_not_decode_is_no_answer(connect: ConnectBus) -> None:
    bus = await connect()

    async def nonsense(_: StatusRequest) -> StatusRequest:
        return StatusRequest()

    await serve(bus, ASK_STATUS, codec.decode_status_request, nonsense)
    with pytest.raises(NoAnswer, match="does not decode"):
        await ask(bus, ASK_STATUS, StatusRequest(), codec.decode_status, timeout_s=1.0)
    assert await ask_all(bus, ASK_STATUS, StatusRequest(), codec.decode_status, wait_s=0.05) == []


async def test_an_answer_larger_than_a_message_is_not_sent_and_the_next_one_is(
    connect: ConnectBus,
) -> None:
    bus = await connect()
    instances = iter(("x" * (bus.payload_bytes_max + 1), "y"))

    async def answer(_: StatusRequest) -> ServiceStatus:
        return status(next(instances))

    await serve(bus, ASK_STATUS, codec.decode_status_request, answer)
    with pytest.raises(NoAnswer):
        await bus.request(ASK_STATUS, codec.encode(StatusRequest()), timeout_s=0.1)
    got = await ask(bus, ASK_STATUS, StatusRequest(), codec.decode_status, timeout_s=1.0)
    assert got == status("y")
