import pytest

from bench.drain import by_second
from bench.live import percentile


@pytest.mark.parametrize(
    ("percent", "value"),
    [(50, 100.0), (99, 198.0), (100, 200.0), (0, 1.0)],
)
def test_a_percentile_is_a_value_that_was_measured(percent: int, value: float) -> None:
    assert percentile([float(each) for each in range(200, 0, -1)], percent) == value


def test_a_percentile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 50)


def test_bindings_are_counted_by_second_since_the_first_with_pauses_as_zeros() -> None:
    assert by_second([5.2, 5.9, 6.1, 8.3]) == (3, 0, 0, 1)
