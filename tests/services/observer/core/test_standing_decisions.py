"""When a decision that stands is over, and what is answered then."""

from services.observer.core.standing_decisions import answer
from shared.contracts.decisions import Act
from shared.contracts.outcomes import Outcome
from tests.services.observer.telling import Telling, group, node, pod


def standing() -> Telling:
    told = Telling(stand_ms=10_000)
    told.begins(node("n0"), groups=[group(least=2)])
    told.pods(pod("a"), pod("b"))
    return told


def over(told: Telling, later_ms: int = 0) -> list[int]:
    return [one.seq for one in told.state.standing.over(told.at_ms + later_ms)]


def answered(told: Telling) -> Outcome:
    (one,) = told.state.standing.over(told.at_ms + 60_000)
    return answer(
        one, told.state.cluster_state, observer="observer-0", generation="life", now_ms=told.at_ms
    )


def take(told: Telling, decision: Act) -> None:
    told.state.decided(7, decision, told.at_ms)


def test_a_decision_stands_for_its_time_and_no_longer() -> None:
    told = standing()
    take(told, told.binds("a", "b"))
    assert told.state.standing.next_ms() == told.at_ms + 10_000
    assert over(told, 9_999) == []
    assert over(told, 10_000) == [7]


def test_it_is_over_at_once_when_the_rival_has_bound_or_somebody_deleted_all_of_it() -> None:
    told = standing()
    take(told, told.binds("a", "b"))
    told.pods(pod("a", on="n0"))
    assert over(told) == []
    told.pods(gone=["b"])
    assert over(told) == [7]


def test_what_the_rival_bound_is_bound_and_the_rest_conflicts_so_that_it_is_planned_again() -> None:
    told = standing()
    take(told, told.binds("a", "b", "c"))
    told.pods(pod("a", on="n0"))
    outcome = answered(told)
    assert (outcome.bound, outcome.delivered, outcome.generation) == (1, 1, "life")
    assert [(one.uid, one.result) for one in outcome.members] == [
        ("uid-b", "conflict"),
        ("uid-c", "gone"),
    ]


def test_an_eviction_for_a_gang_is_refused_at_once() -> None:
    told = standing()
    told.pods(pod("victim", "other", on="n0"))
    take(told, told.evicts("victim", for_pods=["a"], via="eviction"))
    assert over(told) == [7]
    outcome = answered(told)
    assert [(one.uid, one.result) for one in outcome.members] == [("uid-victim", "refused")]
    assert outcome.evicted == 0


def test_a_release_stands_until_its_pods_have_gone_whatever_the_clock_says() -> None:
    told = standing()
    told.pods(pod("a", on="n0"))
    take(told, told.evicts("a"))
    assert told.state.standing.next_ms() is None
    assert over(told, 3_600_000) == []
    told.pods(gone=["a"])
    assert over(told) == [7]
    assert (answered(told).evicted, answered(told).members) == (1, ())


def test_a_decision_that_an_earlier_life_left_counts_from_when_it_was_made() -> None:
    told = standing()
    decision = told.binds("a", "b")
    told.at_ms += 60_000
    take(told, decision)
    assert over(told) == [7]
