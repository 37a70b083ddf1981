"""Waits until every process of the suite says that it is ready, and writes that down."""

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

#: Services say nothing by themselves when they become ready, so they are asked: often enough not to
#: be noticed, and only until all are ready.
_ASK_EVERY_S: Final = 0.05
#: After this, and as long again each time, what is missing is reported.
_PATIENCE_S: Final = 10.0

#: In the data folder while a suite runs, ready or not: where `tutti status` finds NATS.
STATE_FILE: Final = "up.json"
#: Figure of the webhook: 1 while the API server sends it reviews.
WEBHOOK_REGISTERED: Final = "webhook_registered"
#: Its note about that: the URL by which the API server finds it, or why it does not.
WEBHOOK_NOTE: Final = "registration"


class RunningFile(msgspec.Struct, frozen=True, kw_only=True):
    """What `STATE_FILE` holds."""

    nats_url: str
    #: Of `tutti up`.
    pid: int
    #: File with the key of the client; "": none is needed.
    nats_credentials: str = ""
    #: Monitoring pages of our NATS; "" where it was given.
    nats_monitor_url: str = ""


class ServiceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One process in the ready file."""

    service: str
    ordinal: int
    pid: int
    http_port: int


class WebhookRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether the API server sends us reviews: where to, or why not."""

    registered: bool
    url: str = ""
    reason: str = ""


class ReadyFile(msgspec.Struct, frozen=True, kw_only=True):
    """What `--ready-file` holds: the ports and pids at the moment when all were ready.

    `nats_pid` is 0 when NATS was given by `--nats`. `nats_credentials` is the file with the key of
    the client; "" when none is needed.
    """

    nats_url: str
    nats_pid: int
    services: tuple[ServiceRow, ...]
    webhook: WebhookRow
    ready_s: float
    nats_credentials: str = ""


async def wait_ready(bus: Bus, keepers: Sequence[Keeper], say: Say) -> dict[str, ServiceStatus]:
    """Wait until the process that each keeper runs now says that it is ready.

    Returns:
        Their answers by title ("binder-0").
    """
    started_s = told_s = time.monotonic()
    while True:
        answers = await ask_all(
            bus,
            ASK_STATUS,
            StatusRequest(),
            decode_status,
            wait_s=_ASK_EVERY_S,
            answers_max=len(keepers),
        )
        found, missing = sort_out({keeper.spec.title: keeper.pid for keeper in keepers}, answers)
        if not missing:
            return found
        now_s = time.monotonic()
        if now_s - told_s >= _PATIENCE_S:
            told_s = now_s
            say(f"not ready after {now_s - started_s:.0f} s: {'; '.join(missing)}")
        await asyncio.sleep(_ASK_EVERY_S)


def sort_out(
    expected: Mapping[str, int | None], answers: Sequence[ServiceStatus]
) -> tuple[dict[str, ServiceStatus], list[str]]:
    """The answers of the processes expected, and in words what is missing.

    Args:
        expected: Process id by title; None while there is no process.
        answers: What came. Answers of other suites on the same NATS are left aside.
    """
    by_pid = {answer.pid: answer for answer in answers}
    found: dict[str, ServiceStatus] = {}
    missing: list[str] = []
    for title, pid in expected.items():
        answer = None if pid is None else by_pid.get(pid)
        if answer is None:
            missing.append(f"{title} does not answer" if pid else f"{title} does not run")
        elif not answer.ready:
            missing.append(f"{title}: {', '.join(answer.not_ready) or 'not ready'}")
        else:
            found[title] = answer
    return found, missing


def write_atomically(path: Path, content: ReadyFile | RunningFile) -> None:
    """Write it atomically: a program that waits for the file never reads half of it. Raises
    OSError.
    """
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
        return WebhookRow(registered=False, reason=note or "it gives no reason")
    return WebhookRow(registered=True, url=note)
