"""Waits until every process reports that it is ready, and writes the ready file."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from shared.bus.connection import Bus
from shared.bus.questions import ask_all
from shared.contracts.codec import decode_status
from shared.contracts.questions import ServiceStatus, StatusRequest
from shared.contracts.subjects import ASK_STATUS
from shared.runtime.whole_files import write_whole
from tutti.up.supervisor import Keeper
from tutti.up.watchdog import Say

#: Interval of requests to services, which do not announce that they are ready.
_ASK_EVERY_S: Final = 0.05
#: Interval of reports about services that are not ready.
_PATIENCE_S: Final = 10.0

#: In the data folder while `tutti up` runs, ready or not: `tutti status` reads NATS's URL there.
STATE_FILE: Final = "up.json"
#: Figure of the webhook: 1 while the API server sends it reviews.
WEBHOOK_REGISTERED: Final = "webhook_registered"
#: Note of the webhook: the URL that the API server uses, or why it is not registered.
WEBHOOK_NOTE: Final = "registration"


class RunningFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `STATE_FILE`."""

    nats_url: str
    #: Process id of `tutti up`.
    pid: int
    #: File with a client's key; "" if none is needed.
    nats_credentials: str = ""
    #: URL of our NATS's monitoring port; "" for a given NATS.
    nats_monitor_url: str = ""


class ServiceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One process in the ready file."""

    service: str
    ordinal: int
    pid: int
    http_port: int


class WebhookRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether the webhook is registered: its URL, or the reason."""

    registered: bool
    url: str = ""
    reason: str = ""


class ReadyFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `--ready-file`: ports and pids at the moment when all services were ready.

    `nats_pid` is 0 when NATS was given by `--nats`. `nats_credentials` is the file with a client's
    key; "" if none is needed.
    """

    nats_url: str
    nats_pid: int
    services: tuple[ServiceRow, ...]
    webhook: WebhookRow
    ready_s: float
    nats_credentials: str = ""


async def ask_services(bus: Bus, wait_s: float, answers_max: int = 1000) -> list[ServiceStatus]:
    """The status of each process that answers in time. Raises BusError."""
    return await ask_all(
        bus, ASK_STATUS, StatusRequest(), decode_status, wait_s=wait_s, answers_max=answers_max
    )


async def wait_ready(bus: Bus, keepers: Sequence[Keeper], say: Say) -> dict[str, ServiceStatus]:
    """Wait until the present process of each keeper is ready; returns their answers by title
    ("binder-0").
    """
    started_s = reported_s = time.monotonic()
    while True:
        answers = await ask_services(bus, _ASK_EVERY_S, len(keepers))
        ready, missing = sort_out({keeper.spec.title: keeper.pid for keeper in keepers}, answers)
        if not missing:
            return ready
        now_s = time.monotonic()
        if now_s - reported_s >= _PATIENCE_S:
            reported_s = now_s
            say(f"not ready after {now_s - started_s:.0f} s: {'; '.join(missing)}")
        await asyncio.sleep(_ASK_EVERY_S)


def sort_out(
    expected: Mapping[str, int | None], answers: Sequence[ServiceStatus]
) -> tuple[dict[str, ServiceStatus], list[str]]:
    """The answers of the expected processes (by title; None while there is no process), and texts
    about the missing ones. Answers of other processes on the same NATS are ignored.
    """
    by_pid = {answer.pid: answer for answer in answers}
    ready: dict[str, ServiceStatus] = {}
    missing: list[str] = []
    for title, pid in expected.items():
        answer = None if pid is None else by_pid.get(pid)
        if answer is None:
            missing.append(f"{title} does not answer" if pid else f"{title} does not run")
        elif not answer.ready:
            missing.append(f"{title}: {', '.join(answer.not_ready) or 'not ready'}")
        else:
            ready[title] = answer
    return ready, missing


def write_atomically(path: Path, content: ReadyFile | RunningFile) -> None:
    """Write a file atomically: its readers never see half of it. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(content)) + b"\n"
    write_whole(path, text, mode=0o644)


def webhook_row(answer: ServiceStatus | None, *, wanted: bool) -> WebhookRow:
    """Whether the webhook is registered, from its own answer."""
    if not wanted:
        return WebhookRow(registered=False, reason="--no-webhook")
    if answer is None:
        return WebhookRow(registered=False, reason="--replicas admission-webhook=0")
    note = answer.notes.get(WEBHOOK_NOTE, "")
    if answer.figures.get(WEBHOOK_REGISTERED, 0.0) != 1.0:
        return WebhookRow(registered=False, reason=note or "no reason was reported")
    return WebhookRow(registered=True, url=note)
