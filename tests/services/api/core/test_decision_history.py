"""The newest decisions: how many are kept, and the ends of their pods."""

from datetime import UTC, datetime

import msgspec

from services.api.core.decision_history import (
    EARLY_MAX,
    EVENTS_MAX,
    DecisionHistory,
    decision_cells,
    visible_part,
)
from shared.contracts.cluster import Gone, PodChanges
from shared.contracts.decisions import (
    Binding,
    Cycle,
    EvictionDecision,
    GangDecision,
    NoteClosed,
    NoteOpened,
    Victim,
)
from shared.contracts.outcomes import Member, Outcome
from shared.contracts.visibility import Decision
from tests.services.observer.scene import EPOCH, pod
from tests.support.reachable import reachable

ENDED_MS = 1_790_000_000_000


def bound(*uids: str) -> GangDecision:
    return GangDecision(
        gang_id="g",
        gang="a/g",
        epoch=1,
        attempt=1,
        bindings=tuple(
            Binding(uid=uid, namespace="a", name=f"pod-{uid}", node="n1") for uid in uids
        ),
        dialect="volcano",
        quorum=len(uids),
        trace_id="",
        first_seen_ms=0,
        cycle=Cycle(cluster_seq=1, outcomes_seq=1, now_ms=1_000, configuration=""),
    )


def ends(decision: Decision) -> list[str]:
    return [one.end for one in decision.status.pods]


def changes(*ended: tuple[str, str], gone: tuple[str, ...] = ()) -> PodChanges:
    return PodChanges(
        epoch=EPOCH,
        at_ms=ENDED_MS,
        changed=tuple(
            msgspec.structs.replace(pod("a"), uid=uid, phase=phase) for uid, phase in ended
        ),
        removed=tuple(Gone(uid=uid, resource_version=1) for uid in gone),
    )


def test_a_pods_first_end_is_in_the_decision_that_bound_it() -> None:
    history = DecisionHistory()
    history.take(1, bound("u1", "u2", "u3"))
    history.take_changes(changes(("u1", "Succeeded"), ("u2", "Running"), ("other", "Failed")))
    history.take_changes(changes(gone=("u1", "u3", "unknown")))
    (found,) = history.oldest_first()
    assert ends(found) == ["Succeeded", "", "Deleted"]
    assert found.status.pods[0].ended == datetime.fromtimestamp(ENDED_MS / 1000, UTC)
    assert found.status.pods[1].ended is None
    history.take_changes(changes(("u2", "Failed")))
    (found,) = history.oldest_first()
    assert ends(found) == ["Succeeded", "Failed", "Deleted"]


def test_what_is_forgotten_with_an_old_decision_leaves_nothing_behind() -> None:
    history = DecisionHistory(decisions_max=1)
    history.take(1, bound("u1"))
    history.take(2, bound("u2"))
    history.take_changes(changes(("u1", "Failed"), ("u2", "Failed")))
    (found,) = history.oldest_first()
    assert [one.uid for one in found.status.pods] == ["u2"]
    assert ends(found) == ["Failed"]
    assert "u1" not in set(reachable(history, str))


def test_a_decision_has_the_name_of_its_gang_for_users() -> None:
    name = "second-a843473f-2a42-4665-8d18-7da12094861f"
    made = msgspec.structs.replace(bound("a"), gang=f"team/{name}")
    history = DecisionHistory()
    history.take(1, made, owner="job/second")
    history.take(2, made)
    found = list(history.oldest_first())
    assert [one.status.title for one in found] == ["job/second", "second"]
    assert decision_cells(found[0], 0)[2] == "job/second"


def outcome(seq: int, *refused: str, gang_id: str = "g") -> Outcome:
    members = tuple(
        Member(uid=uid, node="n1", result="refused", code=403, message="secret") for uid in refused
    )
    return Outcome(
        gang_id=gang_id,
        decision_seq=seq,
        epoch=1,
        binder="binder-0",
        delivered=1,
        bound=1,
        members=members,
        received_ms=1_100,
        last_bound_ms=1_200,
    )


def types(decision: Decision) -> list[str]:
    return [one.type for one in decision.status.events]


def test_an_outcome_that_is_read_before_its_decision_is_in_it_once() -> None:
    history = DecisionHistory()
    history.take_outcome(outcome(1, "u2"))
    history.take_outcome(outcome(2, gang_id="another"))
    history.take(1, bound("u1", "u2"))
    history.take(2, bound("u3"))
    history.take_outcome(outcome(1))
    first, second = history.oldest_first()
    assert (types(first), types(second)) == (["Bound"], [])
    assert [one.unbound for one in first.status.pods] == [False, True]
    (event,) = first.status.events
    assert (event.message, event.failures_count) == ("1 of 2 pods by binder-0", 1)
    assert [(one.name, one.message) for one in event.failures] == [("pod-u2", "refused 403 secret")]
    history.take_changes(changes(("u1", "Failed"), ("u2", "Failed"), ("u3", "Failed")))
    assert [ends(one) for one in history.oldest_first()] == [["Failed", ""], ["Failed"]]


def note(at_ms: int) -> NoteOpened:
    return NoteOpened(gang_id="g", epoch=1, kind="hold", at_ms=at_ms, until_ms=0, reason="NodeLost")


def test_the_newest_notes_of_a_gang_are_in_its_last_decision() -> None:
    history = DecisionHistory()
    history.take_note(note(900))
    history.take(1, bound("u1"))
    history.take(2, bound("u2"))
    for at_ms in range(2_000, 2_000 + EVENTS_MAX + 5):
        history.take_note(note(at_ms))
    first, second = history.oldest_first()
    assert types(first) == ["HoldBegun"]
    assert types(second) == ["HoldBegun"] * EVENTS_MAX
    history.take_note(note(9_000))
    _, second = history.oldest_first()
    assert len(second.status.events) == EVENTS_MAX
    assert second.status.events[-1].time.timestamp() == 9.0


def test_texts_about_an_evicted_pod_are_hidden_from_users_without_rights_to_it() -> None:
    history = DecisionHistory()
    eviction = EvictionDecision(
        gang_id="g",
        gang="a/g",
        epoch=1,
        attempt=1,
        victims=(Victim(namespace="b", name="pod-v", uid="v"),),
        via="eviction",
        reason="Preempted",
        trace_id="",
        cycle=bound().cycle,
    )
    ended = NoteClosed(
        gang_id="g", epoch=1, kind="preemption", at_ms=1_500, reason="Refused", message="secret"
    )
    history.take(1, eviction)
    history.take_outcome(outcome(1, "v"))
    history.take_note(ended)
    history.take(2, bound("u1"))
    history.take_note(ended)
    kept = list(history.oldest_first())
    assert "secret" in str(visible_part(kept[0], frozenset({"a", "b"})))
    for one in kept:
        shown = visible_part(one, frozenset({"a"}))
        assert types(shown) == types(one)
        assert "secret" not in str(shown)
        assert "pod-v" not in str(shown)


def test_of_what_comes_before_its_decision_the_newest_is_kept() -> None:
    history = DecisionHistory()
    number_of = range(1, 3 * EARLY_MAX)
    for seq in number_of:
        history.take_outcome(outcome(seq, gang_id=str(seq)))
        history.take_note(msgspec.structs.replace(note(1), gang_id=str(seq)))
    for seq in number_of:
        history.take(seq, msgspec.structs.replace(bound("u"), gang_id=str(seq)))
    kept = [types(one) for one in history.oldest_first()]
    newest = [["HoldBegun", "Bound"]] * EARLY_MAX
    assert kept == [*[[]] * (len(number_of) - EARLY_MAX), *newest]


def test_events_count_for_the_size_of_the_history() -> None:
    history = DecisionHistory(size_max=10)
    history.take(1, bound("u1"))
    history.take(2, msgspec.structs.replace(bound("u2"), gang_id="another"))
    for at_ms in range(2_000, 2_008):
        history.take_note(note(at_ms))
    assert len(history) == 2
    history.take_note(note(2_008))
    assert [one.metadata.name for one in history.oldest_first()] == [f"{2:012d}"]
    history.take(3, bound(*(f"v{number}" for number in range(9))))
    assert len(history) == 2, "what is forgotten takes its events with it"
