"""One connection on a real server: it heals, it says what is wrong with it, and it fails loudly."""

import asyncio
import logging
import socket

import pytest
from nkeys import PREFIX_BYTE_USER, encode_seed, from_seed

from shared.bus import connection
from shared.bus.connection import Bus, Message
from shared.bus.errors import (
    ApiRefused,
    BusClosed,
    BusError,
    BusUnavailable,
    InvalidSubject,
    MessageTooLarge,
    NoAnswer,
)
from shared.bus.fence import FencedLog
from shared.bus.publisher import Publisher
from shared.contracts.subjects import CLUSTER
from tests.shared.bus.conftest import ConnectBus, LossyBus
from tests.support.nats_server import running_nats_server
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer


async def test_a_request_gets_the_first_answer(connect: ConnectBus) -> None:
    bus = await connect()

    async def answer(message: Message) -> None:
        await bus.publish(message.reply, message.payload.upper())

    await bus.subscribe("shout", answer)
    assert (await bus.request("shout", b"hey", timeout_s=10.0)).payload == b"HEY"


async def test_a_request_without_a_responder_fails_at_once(connect: ConnectBus) -> None:
    bus = await connect()
    with pytest.raises(NoAnswer, match="no process listens"):
        await bus.request("void", b"", timeout_s=5.0)


async def test_a_question_that_is_not_answered_fails_in_time(connect: ConnectBus) -> None:
    bus = await connect()

    async def silent(_: Message) -> None:
        return

    await bus.subscribe("silent", silent)
    with pytest.raises(NoAnswer, match=r"0\.05 s"):
        await bus.request("silent", b"", timeout_s=0.05)


async def test_what_jetstream_refuses_carries_its_codes(connect: ConnectBus) -> None:
    bus = await connect()
    with pytest.raises(ApiRefused) as refused:
        await bus.stream_info("NOWHERE")
    assert (refused.value.code, refused.value.err_code) == (404, 10059)


@pytest.mark.parametrize(
    "subject", ["decisions.act.a b", "decisions.act...", "decisions.act.*", ""]
)
async def test_an_invalid_subject_is_a_bug_that_nothing_retries(
    connect: ConnectBus, subject: str
) -> None:
    """It was BusUnavailable, and the append was repeated for ever."""
    bus = await connect()
    assert not issubclass(InvalidSubject, BusError)
    with pytest.raises(InvalidSubject):
        await bus.publish(subject, b"")
    with pytest.raises(InvalidSubject):
        _ = await asyncio.wait_for(Publisher(bus).publish(subject, b""), 1.0)
    log = FencedLog(bus, CLUSTER, last_applied=0)
    with pytest.raises(InvalidSubject):
        await asyncio.wait_for(log.append(subject, b""), 1.0)
    assert bus.connected


async def test_a_payload_beyond_the_limit_never_reaches_the_server(connect: ConnectBus) -> None:
    bus = await connect()
    with pytest.raises(MessageTooLarge):
        await bus.publish("x", b"x" * (bus.payload_bytes_max + 1))
    assert bus.connected


async def test_an_exception_in_a_handler_fails_the_bus(connect: ConnectBus) -> None:
    bus = await connect()

    async def broken(_: Message) -> None:
        raise ValueError("a bug")

    await bus.subscribe("x", broken)
    await bus.publish("x", b"")
    with pytest.raises(ValueError, match="a bug"):
        async with asyncio.timeout(20.0):
            await bus.wait_failed()


async def test_it_reconnects_by_itself_and_says_so(
    connect: ConnectBus, nats_server: NatsServer
) -> None:
    reported: list[tuple[str, str]] = []
    bus = await connect(on_health=lambda topic, problem: reported.append((topic, problem)))
    reconnections: list[None] = []
    bus.on_reconnect(lambda: reconnections.append(None))
    received: list[bytes] = []

    async def receive(message: Message) -> None:
        received.append(message.payload)

    await bus.subscribe("x", receive)
    await nats_server.kill()
    await eventually(lambda: not bus.connected)
    await nats_server.start()
    await bus.wait_connected()
    await bus.publish("x", b"after")
    await eventually(lambda: received == [b"after"])
    assert reported[0] == ("nats", "")
    assert ("nats", "disconnected") in reported
    assert reported[-1] in {("nats", ""), ("nats permissions", "")}
    assert len(reconnections) == 1


async def test_a_request_made_while_disconnected_waits_for_the_connection(
    connect: ConnectBus, nats_server: NatsServer
) -> None:
    bus = await connect()

    async def answer(message: Message) -> None:
        await bus.publish(message.reply, b"yes")

    await bus.subscribe("ask", answer)
    await nats_server.kill()
    await eventually(lambda: not bus.connected)
    asked = asyncio.create_task(bus.request("ask", b"", timeout_s=5.0))
    await nats_server.start()
    assert (await asked).payload == b"yes"


async def test_without_a_server_it_gives_up_after_its_patience() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(BusUnavailable, match=f"no NATS server at nats://127.0.0.1:{port}"):
        await Bus.connect(f"nats://127.0.0.1:{port}", name="tester", patience_s=0.3)


async def test_a_denied_publish_is_reported_until_no_more_are_denied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The publisher itself sees nothing but a missing answer. A right that setup grants later comes
    without a new connection: found on a real cluster, where a webhook stayed unready.
    """
    monkeypatch.setattr(connection, "DENIED_S", 0.5)
    rights = """
        authorization { users: [ { user: u, password: p, permissions: {
            publish: ["allowed.>"], subscribe: ["_INBOX_tester.>"] } } ] }
    """
    reported: dict[str, str] = {}
    async with running_nats_server(extra_config=rights) as server:
        url = server.url.replace("nats://", "nats://u:p@")
        bus = await Bus.connect(url, name="tester", on_health=reported.__setitem__, patience_s=5.0)
        try:
            await bus.publish("denied.x", b"")
            await eventually(lambda: "denied.x" in reported.get("nats permissions", ""))
            await eventually(lambda: reported["nats permissions"] == "")
        finally:
            await bus.close()


async def test_it_authenticates_by_an_nkey_seed_in_a_file() -> None:
    seed = encode_seed(b"0" * 32, PREFIX_BYTE_USER)
    public = bytes(from_seed(bytearray(seed)).public_key).decode()
    rights = f"authorization {{ users: [ {{ nkey: {public} }} ] }}"
    async with running_nats_server(extra_config=rights) as server:
        path = server.data_dir / "seed"
        path.write_bytes(seed + b"\n")
        bus = await Bus.connect(server.url, name="t", credentials=str(path), patience_s=5.0)
        await bus.close()
        problems: list[str] = []
        with pytest.raises(BusUnavailable):
            await Bus.connect(
                server.url,
                name="t",
                patience_s=0.5,
                on_health=lambda _topic, problem: problems.append(problem),
            )
        # The last attempt may have seen the connection closed before it read the reason.
        assert any("Authorization" in problem for problem in problems), problems


async def test_a_closed_bus_sends_nothing_more_and_may_be_closed_again(bus: LossyBus) -> None:
    await bus.close()
    await bus.close()
    with pytest.raises(BusClosed):
        await bus.publish("x", b"")


async def test_a_record_is_read_back_with_its_headers(bus: LossyBus) -> None:
    await bus.request("cluster.pod", b"\x00\xff", timeout_s=1.0, headers={"Nats-Msg-Id": "a:b c"})
    found = await bus.get_message(CLUSTER, 2)
    assert found is not None
    assert (found.subject, found.payload, found.headers["Nats-Msg-Id"]) == (
        "cluster.pod",
        b"\x00\xff",
        "a:b c",
    )
    assert await bus.get_message(CLUSTER, 3) is None
    last = await bus.get_last(CLUSTER, "cluster.pod")
    assert last == found
    assert await bus.get_last(CLUSTER, "cluster.node") is None


async def test_records_of_a_subject_are_read_one_after_the_other(bus: LossyBus) -> None:
    for subject in ("cluster.pod", "cluster.node", "cluster.pod"):
        await bus.request(subject, b"x", timeout_s=10.0)
    seqs = []
    seq = 1
    while (found := await bus.get_next(CLUSTER, "cluster.pod", seq)) is not None:
        seqs.append(found.seq)
        seq = found.seq + 1
    assert seqs == [2, 4]
    node = await bus.get_next(CLUSTER, "cluster.*", 3)
    assert node is not None
    assert (node.seq, node.subject) == (3, "cluster.node")
    assert await bus.get_next(CLUSTER, "cluster.queue", 1) is None


def test_a_closed_tls_connection_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio logs this each time that a server closes one; other warnings of its are kept."""
    log = logging.getLogger("asyncio")
    log.warning("returning true from eof_received() has no effect when using ssl")
    log.warning("socket.send() raised exception.")
    assert caplog.messages == ["socket.send() raised exception."]
