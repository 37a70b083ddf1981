"""Creates the streams, consumers and the lease bucket: one idempotent step with rights of its own.

Services only bind to these. Run it again after an upgrade: streams and consumers of an older
version get the current configuration. `python -m shared.bus.setup --nats-url nats://…` runs it.

All streams use file storage, also the leases:
a memory stream and its consumers disappear when the server restarts, and no service could create
them again.
"""

import argparse
import asyncio
import logging
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from shared.bus.connection import Bus
from shared.bus.errors import ApiRefused, BusError, BusUnavailable
from shared.bus.jetstream_api import (
    GENERATION,
    NANOSECONDS,
    STREAM_NOT_FOUND,
    WRONG_LAST_SEQUENCE,
    ApiAnswer,
    StreamAnswer,
    StreamInfo,
)
from shared.bus.questions import ask_all
from shared.contracts import codec, subjects
from shared.contracts.cluster import StreamOpened
from shared.contracts.questions import StatusRequest

#: Atomic batches need 2.12, the reset of a consumer 2.14.
SERVER_VERSION_MIN: Final = (2, 14)
#: A lease that is not renewed for this long is free. Whole seconds only.
LEASE_TTL_S: Final = 5
#: Duplicates are detected by sequences (`shared.bus.fence`, expected last subject sequence), not by
#: the server's memory of message ids, so that memory can be small.
DUPLICATE_WINDOW_S: Final = 5
#: Longer than a binding takes; a binder that needs more reports `in_progress`.
BINDER_ACK_WAIT_S: Final = 2
#: No limit: after five deliveries the binder itself reads the pods and reports `BinderGaveUp`. A
#: limit would let a decision end without an outcome when a binder dies during the last delivery.
BINDER_DELIVERIES_MAX: Final = -1
CONTROLLER_ACK_WAIT_S: Final = 30
#: Services answer within milliseconds; if none runs, the server reports that at once.
STATUS_WAIT_S: Final = 0.5
#: Services reconnect within a tenth of a second after a server is back; some may be busy.
SURVIVORS_WAIT_S: Final = 2.0
_ASK_AGAIN_S: Final = 0.1
#: Sets of consumers for planners: three replicas, and two spare ones for pods that are replaced.
PLANNER_SETS: Final = 5
#: Between two attempts to set up.
_TRY_AGAIN_S: Final = 1.0
CONTROLLER_IN_FLIGHT_MAX: Final = 1000
#: Decisions that all binders together may have unacknowledged.
BINDER_IN_FLIGHT_MAX: Final = 256


logger = logging.getLogger(__name__)


# Limits of each stream; the oldest records are dropped first. CLUSTER keeps recent changes: a
# reader that needs older ones takes a snapshot. DECISIONS is the audit log: the planner writes a
# checkpoint every 10,000 records or 60 s and issues an open decision again before it ages out, so a
# starting planner needs only the newest part. OUTCOMES has the limits of DECISIONS. VERDICTS keeps
# one verdict per gang, twice if it requests a PodGroup.
CLUSTER_BYTES: Final = 1 << 30
CLUSTER_AGE_S: Final = 3600
DECISIONS_BYTES: Final = 1 << 30
DECISIONS_AGE_S: Final = 7 * 86400
OUTCOMES_BYTES: Final = 256 << 20
VERDICTS_BYTES: Final = 256 << 20

Config = Mapping[str, Any]


async def ensure_streams(
    bus: Bus,
    *,
    replicas: int = 1,
    planners: int = 2,
    webhooks: int = 2,
    apis: int = 2,
    observed: bool = False,
    survivors_wait_s: float = 0.0,
    remembered: str = "",
) -> str:
    """Create or update all streams, each stored by so many NATS servers (1 or 3), and consumers:
    sets for planners, webhooks and API services, of which each replica uses one; `observed`: for an
    observer in place of the binders. Safe to repeat at any time, also while services run.

    If DECISIONS is missing, its generation is the one that an earlier call returned (`remembered`),
    since the services may have died with the streams, or that of a running service which reports it
    within `survivors_wait_s` seconds; 0 if none can run yet.

    Returns:
        The generation of DECISIONS.

    Raises:
        ApiRefused: The server refused (not enough storage, a change that it cannot make).
        BusUnavailable: The server is too old (2.14 or newer is needed).
        NoAnswer: It has no JetStream, or this user has no right to set it up.
    """
    if bus.server_version < SERVER_VERSION_MIN:
        have, need = (".".join(map(str, v)) for v in (bus.server_version, SERVER_VERSION_MIN))
        raise BusUnavailable(f"nats-server {have} is too old: {need} or newer is needed")
    # Before streams exist: services that find a stream of another generation restart.
    lost = await _lost_generation(bus, survivors_wait_s, remembered)
    for config in stream_configs(replicas):
        await _ensure_stream(bus, config)
    await _write_record_one(bus, subjects.CLUSTER, subjects.CLUSTER_OPENED)
    made = await _write_record_one(bus, subjects.DECISIONS, subjects.DECISIONS_OPENED, lost)
    for stream, config in consumer_configs(planners, webhooks, apis):
        await _ensure_consumer(bus, stream, config)
    for stream, config in observer_configs() if observed else ():
        await _ensure_consumer(bus, stream, config)
    return made


def stream_configs(replicas: int) -> list[Config]:
    """The configuration of every stream, as JetStream's API takes it; `replicas` NATS servers store
    each.
    """

    def log(name: str, subject: str, size: int, age_s: int, **more: Any) -> Config:
        return {
            "name": name,
            "subjects": [subject],
            "storage": "file",
            "retention": "limits",
            "discard": "old",
            "num_replicas": replicas,
            "max_bytes": size,
            "max_age": age_s * NANOSECONDS,
            "duplicate_window": DUPLICATE_WINDOW_S * NANOSECONDS,
            **more,
        }

    return [
        log(
            subjects.CLUSTER,
            subjects.CLUSTER_SUBJECTS,
            CLUSTER_BYTES,
            CLUSTER_AGE_S,
            allow_atomic=True,
        ),
        log(
            subjects.DECISIONS,
            subjects.DECISIONS_SUBJECTS,
            DECISIONS_BYTES,
            DECISIONS_AGE_S,
            allow_atomic=True,
        ),
        log(subjects.OUTCOMES, subjects.OUTCOMES_SUBJECTS, OUTCOMES_BYTES, DECISIONS_AGE_S),
        # A verdict of a gang that is gone carries a time to live of its own.
        log(
            subjects.VERDICTS,
            subjects.VERDICTS_SUBJECTS,
            VERDICTS_BYTES,
            0,
            # Verdicts that request a PodGroup, or a ProvisioningRequest, have a subject of their
            # own, so that the controllers which create these need not read all verdicts.
            subjects=[
                subjects.VERDICTS_SUBJECTS,
                subjects.WANTED_SUBJECTS,
                subjects.PROVISIONING_SUBJECTS,
            ],
            max_msgs_per_subject=1,
            allow_msg_ttl=True,
        ),
        log(
            f"KV_{subjects.LEASES}",
            f"$KV.{subjects.LEASES}.>",
            1 << 20,
            LEASE_TTL_S,
            max_msgs_per_subject=1,
            discard="new",
            duplicate_window=LEASE_TTL_S * NANOSECONDS,
            allow_rollup_hdrs=True,
            deny_delete=True,
        ),
    ]


def consumer_configs(planners: int, webhooks: int, apis: int) -> list[tuple[str, Config]]:
    """Every durable consumer: its stream, and its configuration as JetStream's API takes it."""

    def worker(name: str, deliver: str, subject: str, ack_wait_s: int, in_flight: int) -> Config:
        return {
            "durable_name": name,
            "deliver_policy": deliver,
            "ack_policy": "explicit",
            "filter_subject": subject,
            "ack_wait": ack_wait_s * NANOSECONDS,
            "max_ack_pending": in_flight,
        }

    logs = (
        (subjects.CLUSTER,),
        (subjects.DECISIONS,),
        (subjects.OUTCOMES,),
        (subjects.VERDICTS, subjects.VERDICTS_SUBJECTS),
    )
    configs = [
        (stream, _reader(subjects.planner_consumer(stream, ordinal), *filters))
        for ordinal in range(planners)
        for stream, *filters in logs
    ]
    of_webhooks = (
        *(subjects.CLUSTER_QUEUES, subjects.CLUSTER_NAMESPACES),
        *(subjects.CLUSTER_PRIORITY_CLASSES, subjects.CLUSTER_SYNCED),
    )
    configs += [
        (subjects.CLUSTER, _reader(subjects.webhook_consumer(ordinal), *of_webhooks))
        for ordinal in range(webhooks)
    ]
    of_apis = (
        (subjects.CLUSTER, subjects.CLUSTER),
        (subjects.DECISIONS, subjects.DECISIONS, subjects.DECISIONS_ACT),
        (subjects.DECISIONS, subjects.NOTES, subjects.DECISIONS_NOTE),
        (subjects.OUTCOMES, subjects.OUTCOMES),
        (subjects.VERDICTS, subjects.VERDICTS, subjects.VERDICTS_SUBJECTS),
    )
    configs += [
        (stream, _reader(subjects.api_consumer(records, ordinal), *filters))
        for ordinal in range(apis)
        for stream, records, *filters in of_apis
    ]
    name, acts = subjects.BINDER_CONSUMER, subjects.DECISIONS_ACT
    binder = worker(name, "all", acts, BINDER_ACK_WAIT_S, BINDER_IN_FLIGHT_MAX)
    configs.append((subjects.DECISIONS, {**binder, "max_deliver": BINDER_DELIVERIES_MAX}))
    wait_s, in_flight = CONTROLLER_ACK_WAIT_S, CONTROLLER_IN_FLIGHT_MAX
    for name, filter_subject in (
        (subjects.CONTROLLER_CONSUMER, subjects.VERDICTS_SUBJECTS),
        (subjects.PODGROUP_CONSUMER, subjects.WANTED_SUBJECTS),
        (subjects.PROVISIONING_CONSUMER, subjects.PROVISIONING_SUBJECTS),
    ):
        controller = worker(name, "last_per_subject", filter_subject, wait_s, in_flight)
        configs.append((subjects.VERDICTS, controller))
    return configs


def observer_configs() -> list[tuple[str, Config]]:
    """The consumers of an observer: CLUSTER, and the decisions in DECISIONS."""
    logs = ((subjects.CLUSTER, ()), (subjects.DECISIONS, (subjects.DECISIONS_ACT,)))
    return [
        (stream, _reader(subjects.observer_consumer(stream), *filters)) for stream, filters in logs
    ]


def _reader(name: str, *filters: str) -> Config:
    """A durable consumer that acknowledges nothing."""
    more = {"filter_subjects": list(filters)} if filters else {}
    return {"durable_name": name, "deliver_policy": "all", "ack_policy": "none", **more}


async def _ensure_stream(bus: Bus, config: Config) -> None:
    """Create the stream with a new generation, or update its configuration and keep its own."""
    name = config["name"]
    existing = await _find_stream(bus, name)
    call = "CREATE" if existing is None else "UPDATE"
    kept = existing.generation if existing is not None else ""
    generation = kept or secrets.token_hex(8)
    body = {**config, "metadata": {GENERATION: generation}}
    await bus.api(f"STREAM.{call}.{name}", body, StreamAnswer)


async def _write_record_one(bus: Bus, stream: str, subject: str, replaces: str = "") -> str:
    """Write `StreamOpened` into an empty stream; of several setups at once one succeeds. Returns
    the stream's generation.
    """
    info = await bus.stream_info(stream)
    if info.last_seq > 0:
        return info.generation
    record = StreamOpened(
        stream=stream,
        generation=info.generation,
        at_ms=time.time_ns() // 1_000_000,
        replaces=replaces,
    )
    answer = await bus.append(
        subject,
        codec.encode(record),
        timeout_s=2.0,
        headers={"Nats-Expected-Last-Sequence": "0"},
    )
    error = answer.error
    if error is not None and error.err_code != WRONG_LAST_SEQUENCE:
        raise ApiRefused(subject, error.code, error.err_code, error.description)
    return info.generation


async def _lost_generation(bus: Bus, wait_s: float, remembered: str) -> str:
    """Generation of a lost DECISIONS: the one that the caller remembers, or that running services
    report; "" if DECISIONS exists, or none is known, as on the first start.

    It is written into the stream's successor: bindings decided there may still be in flight.

    DECISIONS without OUTCOMES is deleted: no planner can continue it, because the outcomes of its
    decisions are missing, and its checkpoints name sequences that no longer exist (ADR 0018).
    """
    decisions = await _find_stream(bus, subjects.DECISIONS)
    if decisions is not None and decisions.last_seq > 0:
        if await _find_stream(bus, subjects.OUTCOMES) is not None:
            return ""
        logger.warning(
            "stream OUTCOMES is missing: deleting DECISIONS, which cannot be continued without it"
        )
        await bus.api(f"STREAM.DELETE.{subjects.DECISIONS}", None, ApiAnswer)
        return decisions.generation
    if remembered:
        return remembered
    until_s = time.monotonic() + wait_s
    while True:
        statuses = await ask_all(
            bus, subjects.ASK_STATUS, StatusRequest(), codec.decode_status, wait_s=STATUS_WAIT_S
        )
        known = next((status.decisions for status in statuses if status.decisions), "")
        if known or time.monotonic() >= until_s:
            return known
        await asyncio.sleep(_ASK_AGAIN_S)


async def _find_stream(bus: Bus, name: str) -> StreamInfo | None:
    try:
        return await bus.stream_info(name)
    except ApiRefused as error:
        if error.err_code != STREAM_NOT_FOUND:
            raise
        return None


async def _ensure_consumer(bus: Bus, stream: str, config: Config) -> None:
    name = config["durable_name"]
    body = {"stream_name": stream, "config": {**config, "name": name}, "action": ""}
    await bus.api(f"CONSUMER.CREATE.{stream}.{name}", body, ApiAnswer)


async def _main(arguments: argparse.Namespace) -> None:
    """Set up, and retry until it succeeds or `--patience-s` is over: NATS may not have its storage,
    a leader, or this user's rights yet.
    """
    deadline_s = time.monotonic() + arguments.patience_s
    while True:
        try:
            return await _set_up(arguments, deadline_s - time.monotonic())
        except BusError as error:
            if time.monotonic() + _TRY_AGAIN_S >= deadline_s:
                raise
            logger.warning("NATS cannot be set up yet: %s", error)
        await asyncio.sleep(_TRY_AGAIN_S)


async def _set_up(arguments: argparse.Namespace, patience_s: float) -> None:
    bus = await Bus.connect(
        arguments.nats_url,
        name="setup",
        user="provision",
        credentials=arguments.nats_credentials,
        tls_ca=arguments.nats_ca,
        patience_s=max(0.0, patience_s),
    )
    try:
        await ensure_streams(
            bus,
            replicas=arguments.replicas,
            planners=arguments.planners,
            webhooks=arguments.webhooks,
            apis=arguments.apis,
            survivors_wait_s=SURVIVORS_WAIT_S,
        )
    finally:
        await bus.close()


def main(argv: Sequence[str]) -> int:
    """Run the setup step as a command; returns 0 when it has succeeded."""
    parser = argparse.ArgumentParser(
        prog="python -m shared.bus.setup",
        description="Make or update the streams and consumers that Tutti's services bind to.",
    )
    parser.add_argument("--nats-url", default="nats://127.0.0.1:4222", help="NATS servers")
    parser.add_argument("--nats-credentials", default="", help="credentials file or nkey seed")
    parser.add_argument("--nats-ca", default="", help="CA of the NATS servers")
    parser.add_argument(
        "--replicas", type=int, default=1, choices=(1, 3), help="copies of a stream"
    )
    parser.add_argument(
        "--planners",
        type=int,
        default=PLANNER_SETS,
        help="sets of consumers for planners: replicas, and two for those that are replaced",
    )
    parser.add_argument("--webhooks", type=int, default=2, help="webhook replicas")
    parser.add_argument("--apis", type=int, default=2, help="replicas of the API service")
    parser.add_argument("--patience-s", type=float, default=60.0, help="try for this long")
    logging.basicConfig(format="setup: %(message)s")
    try:
        asyncio.run(_main(parser.parse_args(argv)))
    except BusError as error:
        sys.stderr.write(f"setup: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
