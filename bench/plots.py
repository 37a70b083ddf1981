"""``python -m bench.plots``: the figures of a session of benchmarks as plots under docs/plots.

Drawn from the newest certificate that has a session beside it, or from the file that is given.
Plain SVG, without a library: the plots are part of the repository and must come out the same
anywhere.
"""

import argparse
import html
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from bench.bars import DrainCase
from bench.live import LiveRun
from bench.session import Session
from bench.yardstick import bind_limit

_DOCS: Final = Path(__file__).parents[1] / "docs"
CERTIFICATES: Final = _DOCS / "certificates"
PLOTS: Final = _DOCS / "plots"
_PANEL_W, _PANEL_H, _LEFT, _TOP = 330, 170, 52, 60
#: Ticks of the latencies, which are drawn by their logarithms.
_MS: Final = (10, 30, 100, 300, 1000, 3000)
_BLUE, _GREY, _INK = "#0b5394", "#8a97a5", "#1f2d3d"


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(prog="python -m bench.plots", description=__doc__)
    parser.add_argument("--session", type=Path, metavar="FILE", help="a session as JSON")
    for path in draw(parser.parse_args().session or newest()):
        print(path)


def draw(session: Path) -> list[Path]:
    """Draw every plot of a session and return the files."""
    PLOTS.mkdir(exist_ok=True)
    drawn = {PLOTS / name: plot for name, plot in plots(read(session)).items()}
    for path, plot in drawn.items():
        path.write_text(plot)
    return list(drawn)


def newest() -> Path:
    """The session beside a certificate that started last."""
    return max(CERTIFICATES.glob("*.json"), key=lambda path: (read(path).started_at, path))


def read(path: Path) -> Session:
    """A session as it was written."""
    return msgspec.json.decode(path.read_bytes(), type=Session)


def plots(session: Session) -> dict[str, str]:
    """Every plot by its file's name."""
    ours = [case for case in session.drains if case.run.contender == "tutti"]
    lives = [run for run in session.lives if run.contender == "tutti"]
    return {"drain.svg": drains(ours), "live.svg": lives_of(lives)}


def drains(cases: Sequence[DrainCase]) -> str:
    """Pods bound in each second of every run, one panel a load; dashed, a bare client's rate."""
    panels = [
        (load, list(of_load))
        for load, of_load in groupby(
            sorted(cases, key=lambda case: case.run.load), lambda case: case.run.load
        )
    ]
    rows = (len(panels) + 1) // 2
    lines: list[str] = []
    for place, (load, found) in enumerate(panels):
        x = _LEFT + place % 2 * (_PANEL_W + _LEFT + 10)
        y = _TOP + place // 2 * (_PANEL_H + 66)
        lines += _drain_panel(x, y, load, found)
    return _plot(
        2 * (_PANEL_W + _LEFT) + 30,
        rows * (_PANEL_H + 66) + 30,
        "Pods bound in each second; dashed: what a client reaches that only binds",
        lines,
    )


def _drain_panel(x: int, y: int, load: str, cases: Sequence[DrainCase]) -> Iterator[str]:
    limits = [bind_limit(case.before, case.after) for case in cases]
    seconds = max(len(case.run.bound_by_second) for case in cases)
    high = max([*limits, *(n for case in cases for n in case.run.bound_by_second)])
    top = _round_up(high)

    def at(second: float, rate: float) -> tuple[float, float]:
        return x + second / max(seconds, 1) * _PANEL_W, y + _PANEL_H * (1 - rate / top)

    yield _text(x, y - 10, f"{load}, {len(cases)} run{'s' * (len(cases) > 1)}", "start", bold=True)
    yield from _ticks(x, [top * part / 4 for part in range(5)], at)
    for limit in limits:
        _, level = at(0, limit)
        yield (
            f'<path class="limit" d="M{x} {level:.1f}h{_PANEL_W}" stroke="{_GREY}" '
            'stroke-dasharray="4 3"/>'
        )
    for case in cases:
        points = [at(second + 0.5, rate) for second, rate in enumerate(case.run.bound_by_second)]
        path = "L".join(f"{px:.1f} {py:.1f}" for px, py in points)
        yield f'<path class="run" d="M{path}" fill="none" stroke="{_BLUE}" stroke-width="1.8"/>'
    yield _text(x, y + _PANEL_H + 18, "0 s", "start")
    yield _text(x + _PANEL_W, y + _PANEL_H + 18, f"{seconds} s", "end")


def lives_of(runs: Sequence[LiveRun]) -> str:
    """Latency of one gang into an idle cluster, each try a dot; and of gangs in a crowd."""
    width = 2 * _PANEL_W

    def at(place: float, ms: float) -> tuple[float, float]:
        share = (math.log10(max(ms, _MS[0])) - 1) / (math.log10(_MS[-1]) - 1)
        return _LEFT + place * width, _TOP + _PANEL_H * (1 - share)

    lines = list(_ticks(_LEFT, _MS, at, width=width))
    for number, run in enumerate(runs):
        middle = (number + 0.5) / len(runs)
        for place, ms in enumerate(run.one_all_ms):
            px, py = at(middle - 0.14 / len(runs) + place * 0.004 / len(runs), ms)
            lines.append(
                f'<circle class="one" cx="{px:.1f}" cy="{py:.1f}" r="2.5" fill="{_BLUE}"/>'
            )
        px, low = at(middle + 0.14 / len(runs), run.crowd_p50_ms)
        _, high = at(middle, run.crowd_p99_ms)
        lines.append(
            f'<path class="crowd" d="M{px:.1f} {low:.1f}V{high:.1f}" stroke="#c77700" '
            'stroke-width="6" stroke-linecap="round"/>'
        )
        px, _ = at(middle, 0)
        lines.append(_text(px, _TOP + _PANEL_H + 18, f"run {number + 1}", "middle"))
    said = "dots: one gang of 8; bar: p50 to p99 of 200 gangs at once"
    lines.append(_text(_LEFT, _TOP + _PANEL_H + 38, said, "start"))
    title = "Last pod created to last pod bound, ms"
    return _plot(width + _LEFT + 20, _TOP + _PANEL_H + 52, title, lines)


def _ticks(
    x: int,
    values: Sequence[float],
    at: Callable[[float, float], tuple[float, float]],
    width: int = _PANEL_W,
) -> Iterator[str]:
    for value in values:
        _, level = at(0, value)
        yield f'<path d="M{x} {level:.1f}h{width}" stroke="#e3e7eb"/>'
        yield _text(x - 8, level + 4, f"{value:,.0f}", "end")


def _round_up(value: float) -> float:
    """The next value above that four equal ticks divide well."""
    step = 4.0
    while step * 10 < value:
        step *= 10
    return next(step * part for part in range(1, 12) if step * part >= value)


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{_INK}"{weight}>'
        f"{html.escape(text)}</text>"
    )


def _plot(width: int, height: int, title: str, lines: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
    )
    background = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join(
        [head, background, _text(12, 18, title, "start", bold=True), *lines, "</svg>", ""]
    )


if __name__ == "__main__":
    main()
