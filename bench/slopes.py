"""Straight lines through measurements: does something grow, and how sure is that?"""

from collections.abc import Sequence
from math import sqrt
from typing import Final, NamedTuple

#: So many standard errors below the fitted slope is what surely grows.
_SURE: Final = 2.0
_WIDTH, _HEIGHT, _MARGIN = 720, 360, 56
_COLOURS: Final = ("#06c", "#c30", "#393", "#939", "#c80", "#088", "#555", "#a05", "#640", "#0a0")

Points = Sequence[tuple[float, float]]


class Slope(NamedTuple):
    """A line's slope per second, and its standard error."""

    per_s: float
    error_per_s: float

    @property
    def surely_per_s(self) -> float:
        """What it grows by at least, as far as these points show."""
        return self.per_s - _SURE * self.error_per_s


def slope(points: Points) -> Slope:
    """Least squares over (second, value). Needs three points at different instants."""
    if len(points) < 3:
        raise ValueError(f"{len(points)} points make no line")
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if spread == 0:
        raise ValueError("all points at one instant")
    per_s = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    left = sum((y - mean_y - per_s * (x - mean_x)) ** 2 for x, y in points)
    return Slope(per_s, sqrt(left / (count - 2) / spread))


def after(points: Points, share: float) -> Points:
    """The points beyond a share of their span: what comes before is warming up."""
    first, last = points[0][0], points[-1][0]
    return [(x, y) for x, y in points if x >= first + share * (last - first)]


def svg(title: str, lines: dict[str, Points]) -> str:
    """All lines over minutes, from zero, each with its name at its end."""
    xs = [x for points in lines.values() for x, _ in points]
    first, span = min(xs), max(max(xs) - min(xs), 1e-9)
    top = max(y for points in lines.values() for _, y in points) or 1.0

    def at(point: tuple[float, float]) -> str:
        x = _MARGIN + (point[0] - first) / span * (_WIDTH - 3 * _MARGIN)
        y = _HEIGHT - _MARGIN - point[1] / top * (_HEIGHT - 2 * _MARGIN)
        return f"{x:.1f} {y:.1f}"

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_MARGIN}" y="24" font-size="13">{title}</text>',
        f'<text x="8" y="{_MARGIN}">{top:.0f}</text>',
        f'<text x="8" y="{_HEIGHT - _MARGIN}">0</text>',
        f'<text x="{_WIDTH - 3 * _MARGIN}" y="{_HEIGHT - 24}">{span / 60:.1f} minutes</text>',
    ]
    for (name, points), colour in zip(lines.items(), _COLOURS * len(lines), strict=False):
        path = "L".join(at(point) for point in points)
        x, y = at(points[-1]).split()
        drawn.append(f'<path d="M{path}" fill="none" stroke="{colour}"/>')
        drawn.append(f'<text x="{float(x) + 4:.1f}" y="{y}" fill="{colour}">{name}</text>')
    return "\n".join([*drawn, "</svg>", ""])


def highest(points: Points, begin: float, end: float) -> float:
    """The highest value between two shares of the span; 0 of nothing."""
    first, last = points[0][0], points[-1][0]
    low, high = first + begin * (last - first), first + end * (last - first)
    return max((y for x, y in points if low <= x <= high), default=0.0)
