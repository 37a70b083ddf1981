"""When a decision that stands is over, and what is answered then."""

from services.observer.core.assumed_decisions import answer
from shared.contracts.decisions import Act
from shared.contracts.outcomes import Outcome
from tests.services.observer.scene import Scene, group, node, pod


def assumed() -> Scene:
    scene = Scene(stand_ms=10_000)
    scene.begins(node("n0"), groups=[group(least=2)])
    scene.pods(pod("a"), pod("b"))
    return scene


def over(scene: Scene, later_ms: int = 0) -> list[int]:
    return [one.seq for one in scene.state.assumed.over(scene.at_ms + later_ms)]


def answered(scene: Scene) -> Outcome:
    (one,) = scene.state.assumed.over(scene.at_ms + 60_000)
    return answer(
        one, scene.state.cluster_state, observer="observer-0", generation="life", now_ms=scene.at_ms
    )


def take(scene: Scene, decision: Act) -> None:
    scene.state.decided(7, decision, scene.at_ms)


def test_a_decision_stands_for_its_time_and_no_longer() -> None:
    scene = assumed()
    take(scene, scene.binds("a", "b"))
    assert scene.state.assumed.next_ms() == scene.at_ms + 10_000
    assert over(scene, 9_999) == []
    assert over(scene, 10_000) == [7]


def test_a_decision_ends_at_once_when_all_its_pods_are_bound_elsewhere_or_deleted() -> None:
    scene = assumed()
    take(scene, scene.binds("a", "b"))
    scene.pods(pod("a", on="n0"))
    assert over(scene) == []
    scene.pods(gone=["b"])
    assert over(scene) == [7]


def test_pods_bound_by_the_other_scheduler_count_and_the_rest_is_planned_again() -> None:
    scene = assumed()
    take(scene, scene.binds("a", "b", "c"))
    scene.pods(pod("a", on="n0"))
    outcome = answered(scene)
    assert (outcome.bound, outcome.delivered, outcome.generation) == (1, 1, "life")
    assert [(one.uid, one.result) for one in outcome.members] == [
        ("uid-b", "conflict"),
        ("uid-c", "gone"),
    ]


def test_an_eviction_for_a_gang_is_refused_at_once() -> None:
    scene = assumed()
    scene.pods(pod("victim", "other", on="n0"))
    take(scene, scene.evicts("victim", for_pods=["a"], via="eviction"))
    assert over(scene) == [7]
    outcome = answered(scene)
    assert [(one.uid, one.result) for one in outcome.members] == [("uid-victim", "refused")]
    assert outcome.evicted == 0


def test_a_release_stands_until_its_pods_have_gone_whatever_the_clock_says() -> None:
    scene = assumed()
    scene.pods(pod("a", on="n0"))
    take(scene, scene.evicts("a"))
    assert scene.state.assumed.next_ms() is None
    assert over(scene, 3_600_000) == []
    scene.pods(gone=["a"])
    assert over(scene) == [7]
    assert (answered(scene).evicted, answered(scene).members) == (1, ())


def test_a_decision_that_an_earlier_life_left_counts_from_when_it_was_made() -> None:
    scene = assumed()
    decision = scene.binds("a", "b")
    scene.at_ms += 60_000
    take(scene, decision)
    assert over(scene) == [7]
