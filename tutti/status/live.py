"""The screen of `tutti status --watch`. Pure: from reports to renderables."""

from collections import deque
from datetime import UTC, datetime
from typing import Final

from rich.box import ROUNDED
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from shared.contracts.questions import LedgerAnswer, LedgerQueue
from tutti.service_access import share_of
from tutti.status.report import Report, ServiceLine, StreamLine
from tutti.terminal import bar, counted, shortened, sparkline

#: Number of rounds in a sparkline: a minute, at one per second.
HISTORY: Final = 60
_QUEUES_MAX: Final = 12
_WIDTH: Final = 30
_COLOURS: Final = {
    "Running": "green",
    "Starting": "cyan",
    "Inqueue": "yellow",
    "Pending": "bright_black",
    "Unknown": "magenta",
    "Repairing": "red",
    "Releasing": "bright_red",
    "Completed": "blue",
}


class StatusScreen:
    """The reports of the last rounds."""

    def __init__(self) -> None:
        self.found: Report | None = None
        self.ledger: LedgerAnswer | None = None
        self._decisions: deque[float] = deque(maxlen=HISTORY)
        self._bound: deque[float] = deque(maxlen=HISTORY)
        #: Last sequence and records per second of each stream.
        self._streams: dict[str, tuple[int, float]] = {}

    def take(self, found: Report, ledger: LedgerAnswer | None, seconds: float) -> None:
        """Add a round, `seconds` after the previous one; `ledger` None: no planner answers."""
        self.found, self.ledger = found, ledger
        for kept, rate in (
            (self._decisions, found.decisions_per_s),
            (self._bound, found.pods_bound_per_s),
        ):
            if rate is not None:
                kept.append(rate)
        for line in found.streams:
            before, _ = self._streams.get(line.stream, (line.last_seq, 0.0))
            gained = max(0, line.last_seq - before)
            self._streams[line.stream] = line.last_seq, gained / seconds if seconds > 0 else 0.0

    def draw(self, now: datetime) -> RenderableType:
        """The screen after the last round."""
        found = self.found
        if found is None:
            return Text("asking the services…", "dim")
        parts: list[RenderableType] = [
            _head(found, now),
            Panel(_services(found, now), title="services", title_align="left", box=ROUNDED),
            Panel(self._gangs(found), title="gangs", title_align="left", box=ROUNDED),
        ]
        if self.ledger is not None and self.ledger.queues:
            queues = _queues(self.ledger)
            parts.append(Panel(queues, title="queues", title_align="left", box=ROUNDED))
        if found.streams:
            parts.append(self._draw_streams(found.streams))
        return Group(*parts)

    def _gangs(self, found: Report) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        table.add_column(justify="right")
        table.add_column(justify="right")
        table.add_column()
        most = max(found.gangs.values(), default=1)
        for phase, count in found.gangs.items():
            colour = _COLOURS.get(phase, "white")
            table.add_row(Text(phase, colour), str(count), bar(count, most, _WIDTH, colour))
        if not found.gangs:
            table.add_row(Text("none", "dim"), "", "")
        if found.holds:
            table.add_row(Text("reserved", "magenta"), str(found.holds), "")
        for title, values in (("decisions/s", self._decisions), ("pods bound/s", self._bound)):
            if values:
                line = Text(sparkline(values), "cyan")
                table.add_row(Text(title, "bold"), f"{values[-1]:g}", line)
        return table

    def _draw_streams(self, streams: tuple[StreamLine, ...]) -> RenderableType:
        drawn = Text(" ")
        for line in streams:
            rate = self._streams.get(line.stream, (0, 0.0))[1]
            drawn.append(f"{line.stream} ", "dim")
            drawn.append(counted(line.messages))
            drawn.append(f" +{counted(round(rate))}/s  ", "cyan" if rate >= 1 else "dim")
        return drawn


def _head(found: Report, now: datetime) -> RenderableType:
    word, style = ("ready", "black on green") if found.ready else ("not ready", "white on red")
    head = Table.grid(expand=True)
    head.add_column()
    head.add_column(justify="right")
    title = Text.assemble((f" tutti is {word} ", f"bold {style}"))
    if found.webhook_registered is False:
        title.append("  webhook not registered", "yellow")
    for problem in found.problems:
        title.append(f"  {problem}", "red")
    head.add_row(title, Text(f"{now.astimezone(UTC):%H:%M:%S} UTC ", "dim"))
    return head


def _services(found: Report, now: datetime) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for line in found.services:
        state = Text("●", "green" if line.ready else "red")
        role = Text("active", "bold") if line.active else Text("standby", "dim")
        table.add_row(state, line.instance, role, _age(line, now), _words(line))
    return table


def _age(line: ServiceLine, now: datetime) -> Text:
    seconds = max(0, int(now.timestamp() - line.started_ms / 1000))
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return Text(f"{seconds // length}{unit}", "dim")
    return Text(f"{seconds}s", "dim")


def _words(line: ServiceLine) -> Text:
    if not line.ready:
        return Text(", ".join(line.not_ready) or "not ready", "red")
    return Text("; ".join(f"{topic}: {text}" for topic, text in line.notes.items()), "dim")


def _queues(ledger: LedgerAnswer) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    busy = [one for one in ledger.queues if one.running or one.waiting or one.outside]
    for queue in busy[:_QUEUES_MAX]:
        waits = queue.waiting + queue.outside
        waiting = Text(f"{waits} wait", "yellow" if waits else "dim")
        table.add_row(queue.name, f"{queue.running} run", waiting, *_largest(queue))
    if len(busy) > _QUEUES_MAX:
        table.add_row(Text(f"and {len(busy) - _QUEUES_MAX} more", "dim"))
    if not busy:
        table.add_row(Text("all idle", "dim"))
    return table


def _largest(queue: LedgerQueue) -> tuple[RenderableType, Text]:
    """A bar and the amounts of the resource of which the queue uses most of its share."""
    shared = [one for one in queue.amounts if share_of(one)[1]]
    if not shared:
        return Text(""), Text("")
    one = max(shared, key=lambda one: share_of(one)[0])
    part, whole = share_of(one)
    colour = "yellow" if one.used > whole else "green"
    used, of = shortened(one.resource, one.used), shortened(one.resource, whole)
    return bar(part, 1.0, _WIDTH, colour), Text(f"{used} of {of} {one.resource}", "dim")
