"""`tutti migrate observe`: the report of a `tutti up --observe`: a row per gang, and a summary in
sentences.

Waits are counted from the instant at which a gang had all members that it needs, and only for gangs
that were observed from their creation.
"""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.bus.connection import Bus
from shared.bus.errors import NoAnswer
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.observing import GangObserved, Observation, ObservationRequest
from shared.model.gang_keys import title_of_place
from tutti.api.failures import Refusal, run
from tutti.api.flags import report_flag
from tutti.api.output import print_report
from tutti.service_access import ServiceBus, service_options
from tutti.terminal import plain_table, report_console
from tutti.up.options import OBSERVED_DIR


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from complete to bound, of `count` gangs."""

    count: int
    median_s: float
    p99_s: float


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of gangs, and how long they waited."""

    gangs: int
    #: Already bound when the observation began; excluded from all other counts.
    before: int
    #: Of the remaining gangs: bound whole by the other scheduler; decided by Tutti.
    whole: int
    decided: int
    #: Decided by Tutti, and not (or only in part) bound by the other scheduler.
    only_tutti: int
    #: Bound whole by the other scheduler before Tutti decided.
    only_rival: int
    #: Bound in part at some time, and now; for how long in total.
    partial_ever: int
    partial_now: int
    partial_s: float
    other: Waits | None
    tutti: Waits | None
    #: Gangs for which Tutti would have evicted other pods, or released their own.
    evicting: int
    releasing: int
    #: Decisions, and those that failed verification.
    decisions: int
    failed: int


def summarize(observation: Observation) -> Summary:
    rows = observation.gangs
    fresh = [row for row in rows if not row.before]
    waiting = [row for row in fresh if not row.whole_ms and not row.ended_ms]
    return Summary(
        gangs=len(rows),
        before=len(rows) - len(fresh),
        whole=sum(1 for row in fresh if row.whole_ms),
        decided=sum(1 for row in fresh if row.decided_ms),
        only_tutti=sum(1 for row in waiting if row.decided_ms),
        only_rival=sum(1 for row in fresh if row.whole_ms and not row.decided_ms),
        partial_ever=sum(1 for row in rows if partial_ms(row, observation.at_ms)),
        partial_now=sum(1 for row in rows if row.partial_since_ms),
        partial_s=sum(partial_ms(row, observation.at_ms) for row in rows) / 1000,
        other=_waits(row.whole_ms - row.complete_ms for row in fresh if row.whole_ms),
        tutti=_waits(row.decided_ms - row.complete_ms for row in fresh if row.decided_ms),
        evicting=sum(1 for row in rows if row.evicts),
        releasing=sum(1 for row in rows if row.release),
        decisions=sum(row.proved + row.overtaken + row.failed for row in rows),
        failed=sum(row.failed for row in rows),
    )


def partial_ms(row: GangObserved, at_ms: int) -> int:
    """How long a gang has been bound in part, until now."""
    since = max(at_ms - row.partial_since_ms, 0) if row.partial_since_ms else 0
    return row.partial_ms + since


def _waits(given_ms: Iterable[int]) -> Waits | None:
    """A gang that was bound before all its members existed counts as a wait of 0 s."""
    waits = sorted(max(wait_ms, 0) / 1000 for wait_ms in given_ms)
    if not waits:
        return None
    last = len(waits) - 1
    return Waits(
        count=len(waits), median_s=waits[last // 2], p99_s=waits[min(last, len(waits) * 99 // 100)]
    )


_COLUMNS = ("MEMBERS", "COMPLETE", "TUTTI", "RIVAL FIRST", "RIVAL WHOLE", "PARTIAL")


def show(observation: Observation, console: Console) -> None:
    table = plain_table("GANG", *_COLUMNS, "NOTE", right=_COLUMNS, folded="NOTE")
    for row in observation.gangs:
        _add(table, row, observation.at_ms)
    if observation.gangs:
        console.print(table)
    for line in sentences(observation):
        console.print(Text(line))


def sentences(observation: Observation) -> list[str]:
    counts = summarize(observation)
    hours = (observation.at_ms - observation.since_ms) / 3_600_000
    lines = [
        f"observed {counts.gangs} gangs for {hours:.1f} h, of which {counts.before} were already "
        "bound; times are counted from the moment when a gang has all members that it needs",
        f"rival: {counts.whole} bound whole{_words(counts.other)}; {counts.partial_ever} were "
        f"bound in part for {counts.partial_s:.0f} s in total, {counts.partial_now} are now",
        f"tutti: {counts.decided} would have been bound whole{_words(counts.tutti)}; "
        f"{counts.only_tutti} of these still wait for the other scheduler",
    ]
    lines += _remarks(counts)
    if observation.left_out:
        lines.append(f"{observation.left_out} gangs that were deleted long ago are left out")
    return lines


def _remarks(counts: Summary) -> list[str]:
    lines: list[str] = []
    if counts.only_rival:
        lines.append(
            f"{counts.only_rival} gangs were bound by the other scheduler before Tutti decided them"
        )
    if counts.evicting or counts.releasing:
        lines.append(
            f"Tutti would have evicted other pods for {counts.evicting} gangs, and released the "
            f"bound pods of {counts.releasing}"
        )
    if counts.failed:
        lines.append(
            f"DEFECT: {counts.failed} of {counts.decisions} decisions failed verification; do not "
            "switch, and report it with the observer's log"
        )
    elif counts.decisions:
        lines.append(f"all {counts.decisions} decisions passed verification")
    return lines


def _words(waits: Waits | None) -> str:
    if waits is None:
        return ""
    return f", median {waits.median_s:.1f} s, 99 % within {waits.p99_s:.1f} s"


def _add(table: Table, row: GangObserved, at_ms: int) -> None:
    partial = partial_ms(row, at_ms) / 1000
    cells = (
        f"{row.bound}/{row.members} needs {row.needs}",
        _instant(row.complete_ms),
        _after(row.decided_ms, row.complete_ms),
        "before" if row.before else _after(row.first_bound_ms, row.complete_ms),
        "" if row.before else _after(row.whole_ms, row.complete_ms),
        Text(f"{partial:.1f} s", "red" if row.partial_since_ms else "") if partial else "",
    )
    table.add_row(title_of_place(row.gang), *cells, _note(row))


def _note(row: GangObserved) -> str:
    notes = []
    if row.partial_since_ms:
        notes.append("still partial")
    elif row.ended_ms:
        notes.append("gone")
    if row.evicts:
        notes.append(f"Tutti would evict {row.evicts} pods for it")
    if row.release:
        notes.append(f"Tutti would release it ({row.release})")
    if row.failure:
        notes.append(f"verification failed: {row.failure}")
    return "; ".join(notes)


def _instant(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%SZ") if at_ms else "never"


def _after(at_ms: int, since_ms: int) -> str:
    """Seconds since the gang was complete; negative for members that were bound before."""
    if not at_ms:
        return ""
    return f"{(at_ms - since_ms) / 1000:+.1f} s" if since_ms else _instant(at_ms)


#: Timeout of a report; thousands of rows take a fraction of it.
_ANSWER_S: Final = 5.0


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `-o json` prints."""

    summary: Summary
    observation: Observation


@click.command()
@service_options
@click.option(
    "--filename",
    "--file",
    "-f",
    "path",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the report that `tutti up --observe --report` wrote, instead of a running observer.",
)
@report_flag
def observe(*, services: ServiceBus, path: Path | None, output: str) -> None:
    """Show what `tutti up --observe` found beside another scheduler: when that scheduler bound each
    gang, when Tutti would have, and which gangs stay bound in part.
    """
    observation = run(_read_file(path) if path is not None else _ask(services))
    data = _Report(summary=summarize(observation), observation=observation)
    print_report(data, output, lambda: show(observation, report_console()))


async def _read_file(path: Path) -> Observation:
    content = await asyncio.to_thread(path.read_bytes)
    try:
        return msgspec.json.decode(content, type=Observation)
    except msgspec.MsgspecError as error:
        raise Refusal(f"{path}: {error}") from None


async def _ask(services: ServiceBus) -> Observation:
    folder = await services.folder()
    if folder is not None:
        services = msgspec.structs.replace(services, data_dir=folder / OBSERVED_DIR)
    async with services.connected("tutti-observe") as bus:
        first = await _page(bus, ObservationRequest())
        gangs = list(first.gangs)
        for number in range(1, first.pages):
            page = await _page(bus, ObservationRequest(page=number, at_ms=first.at_ms))
            gangs += page.gangs
        return msgspec.structs.replace(first, gangs=tuple(gangs), pages=1)


async def _page(bus: Bus, question: ObservationRequest) -> Observation:
    decode = codec.decode_observation
    try:
        return await ask(bus, subjects.ASK_OBSERVATION, question, decode, timeout_s=_ANSWER_S)
    except NoAnswer:
        raise Refusal("no observer answers") from None
