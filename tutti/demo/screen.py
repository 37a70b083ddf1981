"""The demo's output: its lines, and below them, on a terminal, the present state of the cluster."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tutti.demo.claims import GPU, Claim, Job, PodObservation, of_job
from tutti.demo.stage import Line, Stage

_FRAME_S: Final = 0.1
#: Columns where there is no terminal.
WIDTH: Final = 120
_COLOURS: Final = ("cyan", "magenta", "yellow", "blue")


class Screen:
    def __init__(self, console: Console, stage: Stage) -> None:
        self._console = console
        self._stage = stage
        self._printed = 0

    async def run(self) -> None:
        """Show until cancelled; then every line has been printed."""
        live: Live | None = None
        if self._console.is_terminal:
            live = Live(console=self._console, auto_refresh=False, transient=True)
        with live or contextlib.nullcontext():
            try:
                while True:
                    self.print_lines()
                    if live is not None:
                        live.update(draw_cluster(self._stage), refresh=True)
                    await asyncio.sleep(_FRAME_S)
            finally:
                self.print_lines()

    def print_lines(self) -> None:
        for line in self._stage.lines[self._printed :]:
            self._console.print(timed_line(line), highlight=False)
        self._printed = len(self._stage.lines)


def timed_line(line: Line) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=6, justify="right", style="dim", no_wrap=True)
    table.add_column()
    table.add_row(f"{line.at_s:.1f}s", Text(line.text, style=line.style))
    return table


def draw_cluster(stage: Stage) -> RenderableType:
    """The cluster and the act's jobs as the API server shows them now."""
    return Panel(
        Group(_nodes(stage), Text(), _jobs(stage)),
        title=Text(stage.title, style="bold"),
        title_align="left",
        box=box.ROUNDED,
    )


def _nodes(stage: Stage) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), expand=True)
    table.add_column("node", no_wrap=True, width=8)
    table.add_column("GPU", no_wrap=True, width=5)
    table.add_column("CPU", no_wrap=True, width=7)
    table.add_column("pods", ratio=1)
    pods = sorted(stage.observer.pods.values(), key=lambda each: each.name)
    for name, allocatable in sorted(stage.observer.nodes.items()):
        here = [each for each in pods if each.node == name and each.uses_capacity]
        used: Counter[str] = Counter()
        for each in here:
            used.update(each.requests)
        names = Text("  ").join(_pod(stage.jobs, each) for each in here)
        gpus = f"{used[GPU]}/{allocatable.get(GPU, 0)}"
        table.add_row(name, gpus, f"{used['cpu'] / 1000:g}/{allocatable['cpu'] / 1000:g}", names)
    return table


def _pod(jobs: Sequence[Job], each: PodObservation) -> Text:
    """A pod by its job's number and its own short name."""
    for index, job in enumerate(jobs):
        if job.uid == each.job:
            short = each.name.removeprefix(f"{job.name}-")
            return Text(f"job{index + 1}:{short}", style=_COLOURS[index % len(_COLOURS)])
    return Text(each.name, style="dim")


def _jobs(stage: Stage) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), expand=True)
    table.add_column("gang", no_wrap=True, width=34)
    table.add_column("pods", no_wrap=True, width=24)
    table.add_column("phase", no_wrap=True, width=10)
    table.add_column("why it waits", ratio=1)
    for index, job in enumerate(stage.jobs):
        seen = of_job(job, stage.observer.pods.values())
        verdict = stage.observer.verdicts.get(job.uid)
        gang = job in stage.tutti_jobs
        why = verdict.why if verdict is not None and gang else None
        colour = _COLOURS[index % len(_COLOURS)]
        table.add_row(
            Text(f"job{index + 1} {job.name}", style=colour),
            _counts(seen),
            (verdict.phase if verdict is not None else "") if gang else "no gang",
            Text(why.sentence, style="yellow") if why is not None else "",
        )
    return table


def _counts(seen: Sequence[PodObservation]) -> Text:
    counts = Counter(
        "gone" if each.gone else "Bound" if each.node and each.phase == "Pending" else each.phase
        for each in seen
    )
    text = ", ".join(f"{count} {phase}" for phase, count in sorted(counts.items()))
    return Text(text or "none yet")


def summary(claims: Sequence[Claim]) -> Table:
    """Every claim, whether it held, and its evidence."""
    table = Table(
        title="Each claim, and what the API server showed",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("claim")
    table.add_column("held", justify="center")
    table.add_column("evidence", style="dim")
    for each in claims:
        held = Text("yes", style="green") if each.finding.held else Text("NO", style="bold red")
        table.add_row(each.text, held, each.finding.evidence)
    return table
