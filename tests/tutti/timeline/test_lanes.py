"""Stays side by side."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tutti.timeline.history import Stay, lanes

STAYS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 20)).map(
        lambda one: Stay(
            gang="t/g",
            node="n",
            pods=1,
            began_ms=one[0],
            ended_ms=one[0] + one[1] if one[1] else 0,
        )
    ),
    max_size=12,
)


@given(STAYS)
def test_no_two_stays_of_a_lane_overlap_and_no_lane_is_too_many(stays: list[Stay]) -> None:
    found = lanes(stays)
    assert sorted(map(repr, (one for lane in found for one in lane))) == sorted(map(repr, stays))
    for lane in found:
        for before, after in pairwise(lane):
            assert before.ended_ms
            assert before.ended_ms <= after.began_ms
    at_once = [
        sum(
            other.began_ms <= one.began_ms and (not other.ended_ms or other.ended_ms > one.began_ms)
            for other in stays
        )
        for one in stays
    ]
    assert len(found) <= max(at_once, default=1) or len(found) == 1
