"""Every gang's first pods are reported before any gang's rest, and again for other reasons only."""

import msgspec

from services.controller.core.statuses.waiting_pods import DELAY_MS, FIRST_PODS, WaitingPods
from shared.contracts.verdicts import PodRef, Verdict, Why
from tests.services.controller.core.samples import START_MS, make_running, make_waiting

DUE_MS = START_MS + DELAY_MS


def waiting(gang: str, count: int, *, reason: str = "NotEnoughResources") -> Verdict:
    return make_waiting(
        gang_id=gang,
        why=Why(reason=reason, sentence="no room", since_ms=START_MS),
        waiting=tuple(
            PodRef(uid=f"{gang}-{index}", name=f"{gang}-{index}") for index in range(count)
        ),
    )


def reported(pods: WaitingPods, count: int, now_ms: int = DUE_MS) -> list[str]:
    """Report that many at most."""
    found: list[str] = []
    while len(found) < count and (one := pods.next(now_ms)) is not None:
        found.append(one.pod.name)
        pods.reported(one.verdict.gang_id, one.pod.uid)
    return found


def test_a_gang_that_is_placed_soon_gets_no_condition() -> None:
    pods = WaitingPods()
    pods.note(waiting("a", 2), START_MS)
    assert pods.next(DUE_MS - 1) is None
    assert pods.wait_ms(DUE_MS - 500) == 500
    pods.note(make_running(gang_id="a"), START_MS + 500)
    assert pods.wait_ms(DUE_MS) is None
    assert reported(pods, 9) == []


def test_the_first_pods_of_every_gang_go_before_the_rest_of_a_large_one() -> None:
    pods = WaitingPods()
    pods.note(waiting("large", 1_000), START_MS)
    assert reported(pods, 10) == [f"large-{index}" for index in range(10)]
    pods.note(waiting("small", 5), START_MS)
    assert reported(pods, FIRST_PODS) == ["small-0", "small-1", "small-2"]
    assert reported(pods, 4) == ["large-10", "small-3", "large-11", "small-4"], "then by turns"
    assert len(reported(pods, 2_000)) == 988
    assert pods.wait_ms(DUE_MS) is None


def test_a_pod_is_reported_again_for_another_reason_and_not_for_other_words() -> None:
    pods = WaitingPods()
    pods.note(waiting("a", 2), START_MS)
    assert reported(pods, 9) == ["a-0", "a-1"]
    other = waiting("a", 3)
    assert other.why is not None
    words = msgspec.structs.replace(other.why, sentence="1 of 3 pods fit")
    pods.note(msgspec.structs.replace(other, why=words), DUE_MS)
    assert reported(pods, 9) == ["a-2"], "a pod that came later"
    pods.note(waiting("a", 3, reason="QueueNotOpen"), DUE_MS)
    assert reported(pods, 9) == ["a-0", "a-1", "a-2"]
    pods.note(waiting("a", 3, reason="NotStarting"), DUE_MS)
    assert reported(pods, 9) == [], "of what has a node the kubelet speaks"
