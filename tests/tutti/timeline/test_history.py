"""From the logs to waits and stays."""

from tests.tutti.timeline.logs import decided, evicted, logs, outcome, pods, waiting
from tutti.timeline.history import History, Stay, Wait, build_history, trimmed


def test_a_gang_waits_until_it_is_decided_and_stays_from_its_last_binding_until_its_pods_end() -> (
    None
):
    history = build_history(
        logs(
            decisions=[decided(7, "train", {"p1": "n1", "p2": "n1", "p3": "n2"}, at_ms=5_000)],
            outcomes=[outcome(7, "train", last_bound_ms=5_100)],
            cluster=[
                pods(8_000, ended={"p1": "Succeeded"}),
                pods(9_000, ended={"p2": "Succeeded"}),
            ],
        ),
        from_ms=0,
        to_ms=10_000,
    )
    assert history.waits == (Wait(gang="team/train", began_ms=1_000, ended_ms=5_000),)
    assert history.stays == (
        Stay(gang="team/train", node="n1", pods=2, began_ms=5_100, ended_ms=9_000, end="done"),
        Stay(gang="team/train", node="n2", pods=1, began_ms=5_100),
    )
    assert history.gangs == ["team/train"]


def test_what_was_not_bound_has_no_stay_and_what_has_no_outcome_neither() -> None:
    history = build_history(
        logs(
            decisions=[
                decided(1, "half", {"p1": "n1", "p2": "n2"}),
                decided(2, "open", {"p3": "n1"}),
            ],
            outcomes=[outcome(1, "half", unbound=["p2"])],
        ),
        from_ms=0,
        to_ms=10_000,
    )
    assert [(one.gang, one.node) for one in history.stays] == [("team/half", "n1")]


def test_evicted_pods_end_as_evicted_and_deleted_ones_as_gone() -> None:
    history = build_history(
        logs(
            decisions=[
                decided(1, "victim", {"p1": "n1"}),
                decided(2, "other", {"p2": "n1"}),
                decided(3, "unlucky", {"p3": "n1"}),
                evicted(4, "victim", ["p1"]),
            ],
            outcomes=[outcome(1, "victim"), outcome(2, "other"), outcome(3, "unlucky")],
            cluster=[pods(9_000, gone=["p1", "p2"], ended={"p3": "Failed"})],
        ),
        from_ms=0,
        to_ms=10_000,
    )
    assert {one.gang: one.end for one in history.stays} == {
        "team/victim": "evicted",
        "team/other": "gone",
        "team/unlucky": "failed",
    }


def test_an_outcome_of_another_gang_under_the_same_number_means_nothing() -> None:
    history = build_history(
        logs(decisions=[decided(1, "a", {"p1": "n1"})], outcomes=[outcome(1, "b")]),
        from_ms=0,
        to_ms=10_000,
    )
    assert history.stays == ()


def test_gangs_that_wait_still_say_why() -> None:
    history = build_history(
        logs(verdicts=[waiting("late", "NotEnoughResources")]), from_ms=0, to_ms=9_000
    )
    assert history.waits == (Wait(gang="team/late", began_ms=2_000, why="NotEnoughResources"),)


def test_a_gang_waits_again_since_what_it_had_has_ended_and_not_while_it_is_there() -> None:
    history = build_history(
        logs(
            decisions=[decided(1, "again", {"p1": "n1"}), decided(2, "grows", {"p2": "n1"})],
            outcomes=[outcome(1, "again"), outcome(2, "grows")],
            cluster=[pods(6_000, gone=["p1"])],
            verdicts=[waiting("again", "NotEnoughPods"), waiting("grows", "NotEnoughResources")],
        ),
        from_ms=0,
        to_ms=9_000,
    )
    now = [one for one in history.waits if not one.ended_ms]
    assert now == [Wait(gang="team/again", began_ms=6_000, why="NotEnoughPods")]


def test_what_ended_before_and_what_is_elsewhere_is_left_out() -> None:
    history = build_history(
        logs(
            decisions=[decided(1, "old", {"p1": "n1"}), decided(2, "new", {"p2": "n10"})],
            outcomes=[outcome(1, "old"), outcome(2, "new")],
            cluster=[pods(6_000, gone=["p1"])],
            verdicts=[waiting("late", "x")],
        ),
        from_ms=7_000,
        to_ms=9_000,
    )
    assert [one.gang for one in history.stays] == ["team/new"]
    elsewhere = build_history(
        logs(decisions=[decided(1, "a", {"p1": "n1"})], outcomes=[outcome(1, "a")]),
        from_ms=0,
        to_ms=9_000,
        namespace="other",
    )
    assert not elsewhere.gangs


def test_nodes_are_sorted_as_people_count() -> None:
    stays = tuple(Stay(gang="t/a", node=node, pods=1, began_ms=1) for node in ("n10", "n2", "m"))
    assert History(from_ms=0, to_ms=1, stays=stays).nodes == ["m", "n2", "n10"]


def test_empty_time_at_both_ends_is_left_out_unless_a_gang_still_runs() -> None:
    stay = Stay(gang="t/a", node="n", pods=1, began_ms=30, ended_ms=60, end="done")
    wait = Wait(gang="t/a", began_ms=20, ended_ms=30)
    ended = trimmed(History(from_ms=0, to_ms=100, waits=(wait,), stays=(stay,)))
    assert (ended.from_ms, ended.to_ms) == (20, 60)
    there = Stay(gang="t/a", node="n", pods=1, began_ms=30)
    assert trimmed(History(from_ms=0, to_ms=100, stays=(there,))).to_ms == 100
    assert trimmed(History(from_ms=0, to_ms=100)).to_ms == 100
