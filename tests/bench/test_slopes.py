"""A line through measurements distinguishes growth from noise."""

from random import Random

import pytest

from bench.slopes import after, highest, slope, svg


def test_a_line_is_found_exactly() -> None:
    found = slope([(float(x), 3.0 + 0.5 * x) for x in range(10)])
    assert found.per_s == pytest.approx(0.5)
    assert found.surely_per_s == pytest.approx(0.5)


def test_noise_does_not_surely_grow_and_growth_within_noise_does() -> None:
    random = Random(7)
    noise = [(float(x), 100 + random.uniform(-5, 5)) for x in range(100)]
    assert slope(noise).surely_per_s < 0.02
    growing = [(x, y + 0.3 * x) for x, y in noise]
    assert slope(growing).surely_per_s > 0.2


def test_too_few_points_or_one_instant_make_no_line() -> None:
    for points in ([(0.0, 1.0), (1.0, 2.0)], [(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]):
        with pytest.raises(ValueError, match="point"):
            slope(points)


def test_the_begin_is_left_out_and_the_highest_is_looked_for_where_it_is_meant() -> None:
    points = [(float(x), float(10 - x)) for x in range(11)]
    assert after(points, 0.8)[0] == (8.0, 2.0)
    assert highest(points, 0.5, 0.7) == 5.0


def test_a_plot_has_every_line_and_its_name() -> None:
    drawn = svg("Memory", {"a": [(0.0, 1.0), (60.0, 2.0)], "b": [(0.0, 0.0), (60.0, 4.0)]})
    assert drawn.count("<path") == 2
    assert ">a</text>" in drawn
    assert "1.0 minutes" in drawn
