"""The history of gangs from the objects of Tutti's API."""

from datetime import UTC, datetime
from typing import Literal

import msgspec

from shared.contracts.visibility import (
    API_VERSION,
    DecidedPod,
    Decision,
    DecisionEvent,
    DecisionStatus,
    Gang,
    GangStatus,
    MemberCounts,
    NodePlacement,
    ObjectMeta,
    PendingStatus,
)
from tutti.timeline.history import History, Stay, Wait, build_history, trimmed

BEGAN = 1_790_000_000


def at(second: int) -> datetime:
    return datetime.fromtimestamp(BEGAN + second, UTC)


def ms(second: int) -> int:
    return (BEGAN + second) * 1000


def pod(uid: str, node: str = "", ended: int | None = None, end: str = "") -> DecidedPod:
    when = None if ended is None else at(ended)
    return DecidedPod(namespace="a", name=uid, uid=uid, node=node, ended=when, end=end)


def decision(
    second: int, gang: str, *pods: DecidedPod, action: Literal["Bind", "Evict"] = "Bind"
) -> Decision:
    return Decision(
        api_version=API_VERSION,
        kind="Decision",
        metadata=ObjectMeta(name=f"{second:012d}", namespace="a"),
        status=DecisionStatus(
            action=action,
            gang=f"a/{gang}",
            gang_id=gang,
            time=at(second),
            attempt=1,
            count=len(pods),
            pods=pods,
        ),
    )


def gang(
    name: str, phase: Literal["Inqueue", "Running"], created: int, *nodes: str, why: str = ""
) -> Gang:
    return Gang(
        api_version=API_VERSION,
        kind="Gang",
        metadata=ObjectMeta(name=name, namespace="a", creation_timestamp=at(created)),
        status=GangStatus(
            phase=phase,
            queue="default",
            min_member=1,
            members=MemberCounts(total=1, pending=0, running=0, succeeded=0, failed=0),
            placement=tuple(NodePlacement(node=node, members=1) for node in nodes),
            pending=PendingStatus(reason=why, message="") if why else None,
        ),
    )


def test_stays_end_with_their_last_pod_and_those_of_present_gangs_last() -> None:
    decisions = [
        decision(10, "done", pod("d1", "n1", 30, "Succeeded"), pod("d2", "n1", 40, "Succeeded")),
        decision(11, "victim", pod("v1", "n2", 25, "Deleted")),
        decision(20, "runs", pod("r1", "n1"), pod("r2", "n3", 45, "Failed")),
        decision(24, "runs", pod("v1"), action="Evict"),
    ]
    gangs = [gang("runs", "Running", 5, "n1"), gang("victim", "Inqueue", 2, why="QueueOrder")]
    found = build_history(decisions, gangs, from_ms=ms(0), to_ms=ms(60))
    assert found.left_out == 0
    stays = [
        (one.gang, one.node, one.pods, one.began_ms, one.ended_ms, one.end)
        for one in found.history.stays
    ]
    assert stays == [
        ("a/done", "n1", 2, ms(10), ms(40), "done"),
        ("a/victim", "n2", 1, ms(11), ms(25), "evicted"),
        ("a/runs", "n1", 1, ms(20), 0, "there"),
        ("a/runs", "n3", 1, ms(20), ms(45), "failed"),
    ]
    waits = [(one.gang, one.began_ms, one.ended_ms, one.why) for one in found.history.waits]
    assert waits == [
        ("a/victim", ms(2), ms(11), ""),
        ("a/runs", ms(5), ms(20), ""),
        ("a/victim", ms(25), 0, "QueueOrder"),
    ]


def test_a_decision_that_is_repeated_is_one_stay() -> None:
    decisions = [
        decision(10, "done", pod("d1", "n1")),
        decision(20, "done", pod("d1", "n1", 30, "Succeeded")),
    ]
    found = build_history(decisions, [], from_ms=ms(0), to_ms=ms(60))
    (stay,) = found.history.stays
    assert (stay.began_ms, stay.ended_ms, found.left_out) == (ms(10), ms(30), 0)


def test_a_stay_without_an_end_whose_gang_is_gone_is_counted_only() -> None:
    decisions = [decision(10, "gone", pod("g1", "n1"), pod("g2", "n2"))]
    found = build_history(decisions, [], from_ms=ms(0), to_ms=ms(60))
    assert (found.history.stays, found.left_out) == ((), 2)


def test_what_ended_before_the_period_is_not_in_it() -> None:
    decisions = [decision(10, "done", pod("d1", "n1", 20, "Succeeded"))]
    found = build_history(decisions, [], from_ms=ms(30), to_ms=ms(60))
    assert found.history.stays == ()


def test_a_gang_does_not_inherit_what_its_predecessor_of_the_same_name_did() -> None:
    """The predecessor's pods ended before this service started, so that their end is not known."""
    decisions = [decision(10, "a", pod("p1", "n1")), decision(60, "a", pod("p2", "n1"))]
    decisions = [with_id(one, gang_id) for one, gang_id in zip(decisions, ("1", "2"), strict=True)]
    present = gang("a", "Running", 50, "n1")
    present = msgspec.structs.replace(
        present, metadata=msgspec.structs.replace(present.metadata, uid="2")
    )
    found = build_history(decisions, [present], from_ms=ms(0), to_ms=ms(100))
    assert [(one.began_ms, one.ended_ms) for one in found.history.stays] == [(ms(60), 0)]
    assert [(one.began_ms, one.ended_ms) for one in found.history.waits] == [(ms(50), ms(60))]
    assert found.left_out == 1


def with_id(one: Decision, gang_id: str) -> Decision:
    return msgspec.structs.replace(one, status=msgspec.structs.replace(one.status, gang_id=gang_id))


def test_gangs_have_their_names_for_users_also_when_they_are_gone() -> None:
    name = "second-a843473f-2a42-4665-8d18-7da12094861f"
    one = gang(name, "Inqueue", 20)
    present = msgspec.structs.replace(
        one, status=msgspec.structs.replace(one.status, title="job/second")
    )
    gone = decision(10, f"first-{name[7:]}", pod("p1", "n1", 15, "Succeeded"))
    gone = msgspec.structs.replace(
        gone, status=msgspec.structs.replace(gone.status, title="job/first")
    )
    found = build_history([gone], [present], from_ms=ms(0), to_ms=ms(100))
    assert found.history.gangs == ["a/job/first", "a/job/second"]


def test_a_stay_begins_with_the_last_binding_and_a_pod_that_was_not_bound_has_none() -> None:
    unbound = msgspec.structs.replace(pod("p2", "n2"), unbound=True)
    made = decision(10, "a", pod("p1", "n1", 15, "Succeeded"), unbound)
    bound = DecisionEvent(time=at(12), type="Bound", message="1 of 2 pods by binder-0")
    again = decision(13, "a", pod("p2", "n3", 16, "Succeeded"))
    made = msgspec.structs.replace(
        made, status=msgspec.structs.replace(made.status, events=(bound,))
    )
    found = build_history([made, again], [], from_ms=ms(0), to_ms=ms(60))
    assert [(one.node, one.began_ms, one.ended_ms) for one in found.history.stays] == [
        ("n1", ms(12), ms(15)),
        ("n3", ms(13), ms(16)),
    ]


def test_a_gang_that_is_gone_waited_from_when_it_was_seen_until_its_first_decision() -> None:
    first, grown = (
        decision(second, "a", pod(f"p{second}", "n1", 50, "Deleted")) for second in (10, 20)
    )
    made = [
        msgspec.structs.replace(one, status=msgspec.structs.replace(one.status, first_seen=at(4)))
        for one in (first, grown)
    ]
    (wait,) = build_history(made, [], from_ms=ms(0), to_ms=ms(60)).history.waits
    assert (wait.began_ms, wait.ended_ms) == (ms(4), ms(10))


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
