"""The plot of growth has every measured point, longer times higher up."""

import re

from bench.planner.plot import svg


def test_every_point_is_drawn_where_it_belongs() -> None:
    drawn = svg([(1_000, 10.0), (10_000, 40.0)])
    centres = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)]
    assert [x for x, _ in centres] == [56.0, 584.0]
    assert centres[0][1] > centres[1][1]
    assert "10,000</text>" in drawn
