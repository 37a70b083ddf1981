"""The report of `tutti simulate` as one HTML page with plots beside each other, a column for
each configuration.

The page has no scripts and refers to nothing, so it opens without a network. Plots of one kind
have the same scale. Names are escaped.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Final

from tutti.simulate.figures import OTHERS, Figures, Waits
from tutti.simulate.report import (
    Report,
    Scale,
    facts_of,
    left_out_of,
    scale_of,
    scale_of_waits,
)
from tutti.timeline.strips import colours_of

_WIDTH: Final = 420
_HEIGHT: Final = 130
_LEFT: Final = 58
_RIGHT: Final = 12
_TOP: Final = 10
_BAR: Final = 13
_DAY_S: Final = 86_400.0
#: Of the logarithmic scale of waits.
_DECADES: Final = 5
_GREY: Final = "#9aa4af"
_STYLE: Final = """
:root { --ink: #1f2328; --dim: #59636e; --line: #d1d9e0; --page: #ffffff; --area: #4c8dd6; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --dim: #9198a1; --line: #3d444d; --page: #0d1117; --area: #4c8dd6; }
}
body { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--page);
  margin: 24px; }
h1 { font-size: 20px; } h2 { font-size: 15px; margin: 22px 0 4px; }
p { color: var(--dim); margin: 2px 0; }
.row { display: grid; grid-auto-flow: column; grid-auto-columns: minmax(340px, 460px); gap: 18px;
  overflow-x: auto; }
.name { font-weight: 600; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; } text { font: 11px system-ui, sans-serif; fill: var(--dim); }
.tick { stroke: var(--line); } .area { fill: var(--area); }
.p95 { fill: var(--area); opacity: .45; }
.key { display: inline-block; margin-right: 12px; white-space: nowrap; color: var(--dim); }
.key i { display: inline-block; width: 10px; height: 10px; margin-right: 4px; }
""".strip()


def draw_page(report: Report) -> str:
    """The page, as text."""
    shown = report.configurations
    title = f"{report.trace}: {report.jobs:,} jobs on {report.capacity:,} {report.unit}s"
    about = [f"load {report.load:.3f}", *(["simulated as one node"] if report.pooled else [])]
    about += [*left_out_of(report), *report.notes]
    scale = scale_of_waits(report)
    waiting = max((max(each.course.waiting, default=0.0) for each in shown), default=0.0)
    longest_s = max((row.p95_s for each in shown for row in each.by_size), default=0.0)
    body = [
        f"<h1>{escape(title)}</h1><p>{escape(', '.join(about))}</p>",
        *_row("", shown, lambda each: _facts(each, report.unit, scale)),
        *_row("Used part of the capacity", shown, lambda each: _used(each.course.used, each)),
        *_row("Jobs that wait", shown, lambda each: _waiting(each, waiting)),
        *_row(
            "Waits by part of the cluster: p50 dark, p95 light",
            shown,
            lambda each: _bars(each.by_size, longest_s, scale),
        ),
        *_shares("users", shown, lambda each: each.course.by_user),
    ]
    if any(len(each.course.by_queue) > 1 for each in shown):
        body += _shares("queues", shown, lambda each: each.course.by_queue)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _row(title: str, shown: Sequence[Figures], cell: Callable[[Figures], str]) -> Iterator[str]:
    if title:
        yield f"<h2>{escape(title)}</h2>"
    cells = "\n".join(f"<div>{cell(each)}</div>" for each in shown)
    yield f'<div class="row">\n{cells}\n</div>'


def _facts(figures: Figures, unit: str, scale: Scale) -> str:
    notes = [*figures.warnings, *([figures.problem] if figures.problem else [])]
    lines = [*facts_of(figures, unit, scale), *(f"Warning: {note}" for note in notes)]
    texts = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return f'<div class="name">{escape(figures.configuration)}</div>{texts}'


def _shares(
    kind: str, shown: Sequence[Figures], parts: Callable[[Figures], Mapping[str, Sequence[float]]]
) -> Iterator[str]:
    """Used parts of the capacity in layers; a name has the same colour in each plot."""
    names = list(dict.fromkeys(name for each in shown for name in parts(each) if name != OTHERS))
    colours = {**colours_of(names), OTHERS: _GREY}
    yield from _row(
        f"Used part of the capacity by {kind}",
        shown,
        lambda each: _layers(parts(each), colours, each),
    )
    keys = (
        f'<span class="key"><i style="background:{colours[name]}"></i>{escape(name)}</span>'
        for name in (*names, OTHERS)
        if any(name in parts(each) for each in shown)
    )
    yield f"<p>{''.join(keys)}</p>"


def _used(values: Sequence[float], figures: Figures) -> str:
    return _over_time([_area(values, [0.0] * len(values), 1.0, 'class="area"')], 1.0, figures, "%")


def _waiting(figures: Figures, highest: float) -> str:
    top, values = _round_up(highest), figures.course.waiting
    area = _area(values, [0.0] * len(values), top, 'class="area"')
    return _over_time([area], top, figures, "")


def _layers(
    parts: Mapping[str, Sequence[float]], colours: Mapping[str, str], figures: Figures
) -> str:
    areas: list[str] = []
    below = [0.0] * len(figures.course.used)
    for name, values in parts.items():
        above = [low + value for low, value in zip(below, values, strict=True)]
        areas.append(_area(above, below, 1.0, f'fill="{colours[name]}"', name))
        below = above
    return _over_time(areas, 1.0, figures, "%")


def _area(
    above: Sequence[float], below: Sequence[float], top: float, style: str, label: str = ""
) -> str:
    """Steps between two courses."""
    step = (_WIDTH - _LEFT - _RIGHT) / (len(above) or 1)

    def edge(values: Sequence[float]) -> list[str]:
        return [
            f"{_LEFT + (place + side) * step:.1f} {_y(value / top):.1f}"
            for place, value in enumerate(values)
            for side in (0, 1)
        ]

    if not above:
        return ""
    path = "L".join((*edge(above), *reversed(edge(below))))
    title = f"<title>{escape(label)}</title>" if label else ""
    return f'<path d="M{path}Z" {style}>{title}</path>'


def _y(part: float) -> float:
    return _TOP + _HEIGHT * (1 - min(part, 1.0))


def _over_time(areas: Sequence[str], top: float, figures: Figures, unit: str) -> str:
    """A plot with an axis of the time since the first submission."""
    span_s = figures.course.interval_s * len(figures.course.used)
    scale = Scale("d", _DAY_S) if span_s >= 3 * _DAY_S else scale_of(span_s)
    lines = list(areas)
    for part in (0.0, 0.5, 1.0):
        label = f"{100 * part * top:.0f}%" if unit else f"{part * top:,.0f}"
        lines.append(_line(_LEFT, _y(part), _WIDTH - _RIGHT, _y(part)))
        lines.append(_text(_LEFT - 6, _y(part) + 4, label, "end"))
        at = _LEFT + part * (_WIDTH - _LEFT - _RIGHT)
        lines.append(
            _text(
                at, _y(0) + 16, f"{part * span_s / scale.seconds:,.3g} {scale.name}", _anchor(part)
            )
        )
    return _svg(_TOP + _HEIGHT + 22, lines)


def _bars(rows: Sequence[Waits], longest_s: float, scale: Scale) -> str:
    """p50 and p95 of each size class, on a logarithmic scale."""
    last = math.ceil(math.log10(max(longest_s / scale.seconds, 1.0)))
    first = last - _DECADES
    width = _WIDTH - _LEFT - _RIGHT

    def x(amount: float) -> float:
        part = (math.log10(max(amount, 10.0**first)) - first) / _DECADES
        return _LEFT + width * min(1.0, part)

    lines: list[str] = []
    bottom = _TOP + len(rows) * (2 * _BAR + 8)
    for decade in range(_DECADES + 1):
        at = _LEFT + width * decade / _DECADES
        lines.append(_line(at, _TOP, at, bottom))
        label = f"{10.0 ** (first + decade):,g} {scale.name}"
        lines.append(_text(at, bottom + 14, label, _anchor(decade / _DECADES)))
    for place, row in enumerate(rows):
        y = _TOP + place * (2 * _BAR + 8)
        lines.append(_text(_LEFT - 6, y + _BAR + 4, row.name, "end"))
        for below, (style, seconds) in enumerate((("area", row.p50_s), ("p95", row.p95_s))):
            end = x(seconds / scale.seconds)
            lines.append(
                f'<rect class="{style}" x="{_LEFT}" y="{y + below * _BAR}" height="{_BAR - 1}" '
                f'width="{end - _LEFT:.1f}"/>'
            )
            label = f"{scale.shown(seconds)} {scale.name}"
            lines.append(_text(min(end + 4, _WIDTH - 48), y + (below + 1) * _BAR - 3, label))
    return _svg(bottom + 20, lines)


def _round_up(value: float) -> float:
    """The next 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 1 else 1.0
    return next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= value)


def _anchor(part: float) -> str:
    return "start" if part == 0 else "end" if part == 1 else "middle"


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="tick" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def _text(x: float, y: float, label: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(label)}</text>'


def _svg(height: int, lines: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">'
        + "".join(lines)
        + "</svg>"
    )
