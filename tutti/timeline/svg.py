"""A timeline as an SVG drawing: lanes per node, and above them the gangs that wait. Pure.

It has no scripts or references, so it can be part of a page or a report. Names are escaped.
"""

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from tutti.timeline.history import History, Stay, Wait, lanes
from tutti.timeline.strips import clock, colours_of, lasted

_WIDTH: Final = 1120
_LEFT: Final = 150
_RIGHT: Final = 24
_TOP: Final = 64
_LANE: Final = 22
_GAP: Final = 8
_TICKS: Final = 8
_LETTER: Final = 6.6
#: Maximum number of lanes; more cannot be distinguished.
LANES_MAX: Final = 400
_WAITS_MAX: Final = 40
#: Minimum width of a wait, in pixels.
_WAIT_LEAST: Final = 12
_STYLE: Final = """
text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: #24292f; }
.title { font-size: 17px; font-weight: 600; }
.dim { fill: #6e7781; }
.inside { font-size: 11px; fill: #1b1f23; }
.card { fill: #ffffff; stroke: #d0d7de; }
.band { fill: #f6f8fa; }
.tick { stroke: #d0d7de; stroke-width: 1; }
.wait { fill: #fff8c5; stroke: #d4a72c; stroke-dasharray: 3 2; }
.bad { stroke: #cf222e; stroke-width: 2.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .dim { fill: #8d96a0; }
  .card { fill: #0d1117; stroke: #30363d; }
  .band { fill: #161b22; }
  .tick { stroke: #30363d; }
  .wait { fill: #3b2e00; }
}
""".strip()


class _Paper:
    def __init__(self, history: History) -> None:
        self.history = history
        self.parts: list[str] = []
        self.y = _TOP

    def x(self, at_ms: int) -> float:
        span = max(1, self.history.to_ms - self.history.from_ms)
        part = (
            min(max(at_ms, self.history.from_ms), self.history.to_ms) - self.history.from_ms
        ) / span
        return _LEFT + part * (_WIDTH - _LEFT - _RIGHT)

    def text(self, x: float, y: float, label: str, style: str = "", anchor: str = "start") -> None:
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">'
            f"{escape(label)}</text>"
        )

    def box(
        self, x: float, y: float, width: float, height: float, style: str, label: str = ""
    ) -> None:
        title = f"<title>{escape(label)}</title>" if label else ""
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" '
            f"{style}>{title}</rect>"
        )


def draw_svg(history: History, title: str) -> str:
    paper = _Paper(history)
    colours = colours_of(history.gangs)
    _waiting(paper)
    left = LANES_MAX
    for index, node in enumerate(history.nodes):
        rows = lanes([stay for stay in history.stays if stay.node == node])
        if left > 0:
            _node(paper, node, rows[:left], colours, banded=index % 2 == 0)
        left -= len(rows)
    if left < 0:
        paper.text(_LEFT, paper.y + 14, "more nodes are left out", "dim")
        paper.y += _LANE
    height = paper.y + 40
    head = _Paper(history)
    head.box(0.5, 0.5, _WIDTH - 1, height - 1, 'class="card"')
    head.text(20, 30, title, "title")
    gangs, nodes = len(history.gangs), len(history.nodes)
    about = f"{gangs} gangs on {nodes} nodes, {lasted(history.to_ms - history.from_ms)}"
    head.text(_WIDTH - _RIGHT, 30, about, "dim", "end")
    _axis(head, paper.y)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-label={quoteattr(title)}>\n'
        f"<style>{_STYLE}</style>\n" + "\n".join((*head.parts, *paper.parts)) + "\n</svg>\n"
    )


def _axis(paper: _Paper, bottom: int) -> None:
    history = paper.history
    for tick in range(_TICKS + 1):
        at_ms = history.from_ms + (history.to_ms - history.from_ms) * tick // _TICKS
        x = paper.x(at_ms)
        paper.parts.append(
            f'<line x1="{x:.1f}" y1="{_TOP - 10}" x2="{x:.1f}" y2="{bottom + 4}" class="tick"/>'
        )
        anchor = "end" if tick == _TICKS else "middle"
        paper.text(x, bottom + 20, clock(at_ms), "dim", anchor)


def _waiting(paper: _Paper) -> None:
    """Draw waits in lanes, without those that are too short to be visible."""
    end_ms = paper.history.to_ms
    shortest_ms = (end_ms - paper.history.from_ms) * _WAIT_LEAST // (_WIDTH - _LEFT - _RIGHT)
    waits: list[Wait] = [
        wait
        for wait in paper.history.waits
        if (wait.ended_ms or end_ms) - wait.began_ms > shortest_ms
    ]
    if not waits:
        return
    paper.text(20, paper.y + 15, "waiting", "dim")
    rows: list[int] = []
    for wait in waits:
        ended_ms = wait.ended_ms or end_ms
        row = next((at for at, free_ms in enumerate(rows) if free_ms <= wait.began_ms), len(rows))
        if row >= _WAITS_MAX:
            continue
        rows[row : row + 1] = [ended_ms]
        x, end = paper.x(wait.began_ms), paper.x(ended_ms)
        y = paper.y + row * _LANE
        label = f"{wait.gang} waited {lasted(ended_ms - wait.began_ms)}"
        paper.box(x, y, max(2.0, end - x), _LANE - 4, 'class="wait"', f"{label} {wait.why}".strip())
        _inside(paper, x, y, end - x, wait.gang, "")
    paper.y += len(rows) * _LANE + _GAP * 2


def _node(
    paper: _Paper,
    node: str,
    rows: Sequence[Sequence[Stay]],
    colours: dict[str, str],
    *,
    banded: bool,
) -> None:
    height = len(rows) * _LANE + _GAP
    if banded:
        paper.box(10, paper.y - 4, _WIDTH - 20, height, 'class="band"')
    paper.text(20, paper.y + 14, node if len(node) <= 18 else f"{node[:17]}…")
    for row, lane in enumerate(rows):
        y = paper.y + row * _LANE
        for stay in lane:
            _stay(paper, y, stay, colours[stay.gang])
    paper.y += height


def _stay(paper: _Paper, y: float, stay: Stay, colour: str) -> None:
    ended_ms = stay.ended_ms or paper.history.to_ms
    x, end = paper.x(stay.began_ms), paper.x(ended_ms)
    how = {"there": "still there", "done": "done", "gone": "deleted"}.get(stay.end, stay.end)
    label = f"{stay.gang}: {stay.pods} pods, {lasted(ended_ms - stay.began_ms)}, {how}"
    bad = ' class="bad"' if stay.end in {"evicted", "failed"} else ""
    paper.box(x, y, max(2.0, end - x - 1), _LANE - 4, f'fill="{colour}"{bad}', label)
    _inside(paper, x, y, end - x, stay.gang, f" x{stay.pods}")


def _inside(paper: _Paper, x: float, y: float, width: float, gang: str, more: str) -> None:
    """Write the gang's name without its namespace, shortened to the width."""
    name = gang.partition("/")[2]
    letters = int((width - 10) / _LETTER)
    if letters >= len(name) + len(more):
        paper.text(x + 5, y + 13, f"{name}{more}", "inside" if more else "")
    elif letters >= 3:
        paper.text(x + 5, y + 13, f"{name[: letters - 1]}…", "inside" if more else "")
