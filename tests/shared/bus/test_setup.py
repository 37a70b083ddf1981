"""The setup step on a real server: complete, repeatable, and record 1 in every fenced stream."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from shared.bus.jetstream_api import StreamInfo
from shared.bus.pull import Delivery, PullLoop
from shared.bus.questions import serve
from shared.bus.setup import LEASE_TTL_S, ensure_streams
from shared.contracts import codec
from shared.contracts.cluster import StreamOpened
from shared.contracts.questions import ServiceStatus, StatusRequest
from shared.contracts.subjects import (
    ASK_STATUS,
    BINDER_CONSUMER,
    CLUSTER,
    CONTROLLER_CONSUMER,
    DECISIONS,
    DECISIONS_OPENED,
    NOTES,
    OUTCOMES,
    PODGROUP_CONSUMER,
    PROVISIONING_CONSUMER,
    VERDICTS,
    act,
    api_consumer,
    planner_consumer,
    verdict,
    wanted,
    webhook_consumer,
)
from tests.shared.bus.conftest import ConnectBus, LossyBus
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer


async def info(bus: LossyBus, call: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        (await bus.request(f"$JS.API.{call}", b"", timeout_s=10.0)).payload
    )
    assert "error" not in answer, answer
    return answer


async def contents(bus: LossyBus, stream: str) -> StreamInfo:
    """What a stream holds, whenever the server was asked."""
    return replace(await bus.stream_info(stream), now_ms=None)


@pytest.mark.parametrize("stream", [CLUSTER, DECISIONS])
async def test_a_fenced_stream_begins_with_its_generation(bus: LossyBus, stream: str) -> None:
    first = await bus.get_message(stream, 1)
    assert first is not None
    record = codec.decode_cluster(first.payload)
    assert isinstance(record, StreamOpened)
    seen = await bus.stream_info(stream)
    assert (record.stream, record.generation) == (stream, seen.generation)
    assert seen.last_seq == 1


async def test_every_consumer_that_a_service_binds_to_is_there(bus: LossyBus) -> None:
    for stream in (CLUSTER, DECISIONS, OUTCOMES):
        for ordinal in (0, 1):
            found = await info(bus, f"CONSUMER.INFO.{stream}.{planner_consumer(stream, ordinal)}")
            assert found["config"]["ack_policy"] == "none"
    for ordinal in (0, 1):
        found = await info(bus, f"CONSUMER.INFO.{CLUSTER}.{webhook_consumer(ordinal)}")
        assert found["config"]["filter_subjects"] == [
            "cluster.queue",
            "cluster.namespace",
            "cluster.priorityclass",
            "cluster.synced",
        ]
    for ordinal in (0, 1):
        for stream, filtered in (
            (CLUSTER, None),
            (DECISIONS, ["decisions.act.>"]),
            (OUTCOMES, None),
            (VERDICTS, ["verdicts.>"]),
        ):
            found = await info(bus, f"CONSUMER.INFO.{stream}.{api_consumer(stream, ordinal)}")
            assert found["config"].get("filter_subjects") == filtered
        found = await info(bus, f"CONSUMER.INFO.{DECISIONS}.{api_consumer(NOTES, ordinal)}")
        assert found["config"]["filter_subjects"] == ["decisions.note.>"]
    binder = (await info(bus, f"CONSUMER.INFO.{DECISIONS}.{BINDER_CONSUMER}"))["config"]
    assert (binder["filter_subject"], binder["ack_wait"], binder["max_deliver"]) == (
        "decisions.act.>",
        2_000_000_000,
        -1,
    )
    for name, subject in (
        (CONTROLLER_CONSUMER, "verdicts.>"),
        (PODGROUP_CONSUMER, "wanted.>"),
        (PROVISIONING_CONSUMER, "provisioning.>"),
    ):
        config = (await info(bus, f"CONSUMER.INFO.{VERDICTS}.{name}"))["config"]
        assert config["deliver_policy"] == "last_per_subject"
        assert config["filter_subject"] == subject


async def test_running_it_again_changes_nothing(bus: LossyBus) -> None:
    before = [await contents(bus, each) for each in (CLUSTER, DECISIONS, OUTCOMES, VERDICTS)]
    await ensure_streams(bus)
    after = [await contents(bus, each) for each in (CLUSTER, DECISIONS, OUTCOMES, VERDICTS)]
    assert before == after


async def _opened(bus: LossyBus) -> StreamOpened:
    found = await bus.get_last(DECISIONS, DECISIONS_OPENED)
    assert found is not None
    record = codec.decode_decision_record(found.payload)
    assert isinstance(record, StreamOpened)
    return record


async def test_a_stream_made_in_place_of_a_lost_one_says_so(
    bus: LossyBus, connect: ConnectBus
) -> None:
    """A planner that still runs has worked with the lost one: its decisions may be in flight."""
    first = await _opened(bus)
    assert first.replaces == ""
    survivor = ServiceStatus(
        service="binder",
        instance="binder-0",
        pid=1,
        version="",
        http_port=0,
        ready=False,
        decisions=first.generation,
    )

    async def answer(_: StatusRequest) -> ServiceStatus:
        return survivor

    await serve(await connect("survivor"), ASK_STATUS, codec.decode_status_request, answer)
    await ensure_streams(bus)
    assert await _opened(bus) == first, "nothing was lost"
    await bus.request(f"$JS.API.STREAM.DELETE.{DECISIONS}", b"", timeout_s=10.0)
    await ensure_streams(bus)
    second = await _opened(bus)
    assert second.replaces == first.generation
    assert second.generation != first.generation


async def test_a_second_setup_knows_the_lost_stream_though_every_service_has_died(
    bus: LossyBus,
) -> None:
    first = await ensure_streams(bus)
    assert first == (await _opened(bus)).generation
    await ensure_streams(bus, remembered=first)
    assert (await _opened(bus)).replaces == "", "nothing was lost"
    await bus.request(f"$JS.API.STREAM.DELETE.{DECISIONS}", b"", timeout_s=10.0)
    assert await ensure_streams(bus, remembered=first) != first
    assert (await _opened(bus)).replaces == first


async def test_decisions_without_their_outcomes_are_deleted(bus: LossyBus) -> None:
    """Their outcomes are gone, so a planner could never continue them."""
    first = await _opened(bus)
    await bus.request(act("g"), b"a decision", timeout_s=10.0)
    await bus.request(f"$JS.API.STREAM.DELETE.{OUTCOMES}", b"", timeout_s=10.0)
    made = await ensure_streams(bus)
    second = await _opened(bus)
    assert (second.generation, second.replaces) == (made, first.generation)
    assert second.generation != first.generation
    assert (await bus.stream_info(DECISIONS)).last_seq == 1
    assert (await bus.stream_info(OUTCOMES)).last_seq == 0
    await ensure_streams(bus)
    assert await _opened(bus) == second, "nothing was lost"


async def test_more_planners_and_other_sizes_are_added_to_what_is_there(
    bus: LossyBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await contents(bus, CLUSTER)
    monkeypatch.setattr("shared.bus.setup.BINDER_IN_FLIGHT_MAX", 16)
    await ensure_streams(bus, planners=3)
    await info(bus, f"CONSUMER.INFO.{CLUSTER}.{planner_consumer(CLUSTER, 2)}")
    binder = (await info(bus, f"CONSUMER.INFO.{DECISIONS}.{BINDER_CONSUMER}"))["config"]
    assert binder["max_ack_pending"] == 16
    assert await contents(bus, CLUSTER) == before


async def test_a_stream_of_an_older_version_gets_todays_configuration(connect: ConnectBus) -> None:
    bus = await connect()
    old = {"name": CLUSTER, "subjects": ["cluster.>"], "storage": "file", "max_bytes": 1000}
    await bus.request(f"$JS.API.STREAM.CREATE.{CLUSTER}", json.dumps(old).encode(), timeout_s=10.0)
    await ensure_streams(bus)
    config = (await info(bus, f"STREAM.INFO.{CLUSTER}"))["config"]
    assert (config["max_bytes"], config["allow_atomic"]) == (1 << 30, True)
    first = await bus.get_message(CLUSTER, 1)
    assert first is not None
    assert isinstance(codec.decode_cluster(first.payload), StreamOpened)


async def test_a_podgroup_controller_that_read_every_verdict_reads_wishes_from_now_on(
    connect: ConnectBus,
) -> None:
    """Streams and consumers of the version before: one subject for all verdicts."""
    bus = await connect()
    stream = {
        "name": VERDICTS,
        "subjects": ["verdicts.>"],
        "storage": "file",
        "max_msgs_per_subject": 1,
        "allow_msg_ttl": True,
    }
    consumer = {
        "name": PODGROUP_CONSUMER,
        "durable_name": PODGROUP_CONSUMER,
        "deliver_policy": "last_per_subject",
        "ack_policy": "explicit",
        "filter_subject": "verdicts.>",
        "ack_wait": 100_000_000,
    }
    await bus.request(
        f"$JS.API.STREAM.CREATE.{VERDICTS}", json.dumps(stream).encode(), timeout_s=10.0
    )
    body = json.dumps({"stream_name": VERDICTS, "config": consumer}).encode()
    await bus.request(
        f"$JS.API.CONSUMER.CREATE.{VERDICTS}.{PODGROUP_CONSUMER}", body, timeout_s=10.0
    )
    await bus.request(verdict("old"), b"old", timeout_s=10.0)
    taken: list[bytes] = []
    pulling = PullLoop(bus, VERDICTS, PODGROUP_CONSUMER)

    async def take_without_ack(batch: list[Delivery]) -> None:
        taken.extend(delivery.payload for delivery in batch)

    task = asyncio.create_task(pulling.run(take_without_ack))
    await eventually(lambda: taken == [b"old"])
    task.cancel()
    await ensure_streams(bus)
    await bus.request(verdict("new"), b"new", timeout_s=10.0)
    await bus.request(wanted("new"), b"wish", timeout_s=10.0)
    task = asyncio.create_task(PullLoop(bus, VERDICTS, PODGROUP_CONSUMER).run(take_without_ack))
    await eventually(lambda: b"wish" in taken)
    assert b"new" not in taken
    task.cancel()


async def test_leases_survive_a_restart_of_the_server(
    bus: LossyBus, nats_server: NatsServer
) -> None:
    await nats_server.kill()
    await nats_server.start()
    await bus.wait_connected()
    assert (await info(bus, "STREAM.INFO.KV_LEASES"))["config"][
        "max_age"
    ] == LEASE_TTL_S * 1_000_000_000


def test_the_command_says_what_is_wrong_and_fails() -> None:
    command = [sys.executable, "-m", "shared.bus.setup", "--nats-url", "nats://127.0.0.1:1"]
    done = subprocess.run(
        [*command, "--patience-s", "0.2"], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("setup: no NATS server at nats://127.0.0.1:1")
