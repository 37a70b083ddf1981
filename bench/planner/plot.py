"""Growth as a plot: CPU of one pod over the number of nodes, both axes logarithmic."""

import math
from collections.abc import Sequence
from typing import Final

_WIDTH, _HEIGHT, _MARGIN = 640, 320, 56
_TICKS_US: Final = (1, 2, 5, 10, 20, 50, 100)


def svg(points: Sequence[tuple[int, float]]) -> str:
    """An SVG of (nodes, microseconds a pod), by rising nodes; at least two points."""
    left, right = math.log(points[0][0]), math.log(points[-1][0])
    low = max(one for one in _TICKS_US if one <= min(us for _, us in points) or one == 1)
    high = min(one for one in _TICKS_US if one >= max(us for _, us in points) or one == 100)

    def x(nodes: int) -> float:
        return _MARGIN + (math.log(nodes) - left) / (right - left) * (_WIDTH - 2 * _MARGIN)

    def y(us: float) -> float:
        share = (math.log(us) - math.log(low)) / (math.log(high) - math.log(low))
        return _HEIGHT - _MARGIN - share * (_HEIGHT - 2 * _MARGIN)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_MARGIN}" y="24">CPU of one pod (us) by number of nodes</text>',
    ]
    for tick in (one for one in _TICKS_US if low <= one <= high):
        at = y(tick)
        lines.append(
            f'<path d="M{_MARGIN} {at:.1f}H{_WIDTH - _MARGIN}" stroke="#ccc"/>'
            f'<text x="{_MARGIN - 8}" y="{at + 4:.1f}" text-anchor="end">{tick}</text>'
        )
    for nodes, us in points:
        lines.append(
            f'<circle cx="{x(nodes):.1f}" cy="{y(us):.1f}" r="3" fill="#06c"/>'
            f'<text x="{x(nodes):.1f}" y="{_HEIGHT - _MARGIN + 20}" text-anchor="middle">'
            f"{nodes:,}</text>"
        )
    path = "L".join(f"{x(nodes):.1f} {y(us):.1f}" for nodes, us in points)
    lines.append(f'<path d="M{path}" fill="none" stroke="#06c" stroke-width="2"/>')
    return "\n".join([*lines, "</svg>", ""])
