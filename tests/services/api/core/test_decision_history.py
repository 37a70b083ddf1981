"""The newest decisions: how many are kept, and the ends of their pods."""

from datetime import UTC, datetime

import msgspec

from services.api.core.decision_history import DecisionHistory, decision_cells
from shared.contracts.cluster import Gone, PodChanges
from shared.contracts.decisions import Binding, Cycle, GangDecision
from shared.contracts.visibility import Decision
from tests.services.observer.scene import EPOCH, pod

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
    assert history._bound == {}


def test_a_decision_has_the_name_of_its_gang_for_users() -> None:
    name = "second-a843473f-2a42-4665-8d18-7da12094861f"
    made = msgspec.structs.replace(bound("a"), gang=f"team/{name}")
    history = DecisionHistory()
    history.take(1, made, owner="job/second")
    history.take(2, made)
    found = list(history.oldest_first())
    assert [one.status.title for one in found] == ["job/second", "second"]
    assert decision_cells(found[0], 0)[2] == "job/second"
