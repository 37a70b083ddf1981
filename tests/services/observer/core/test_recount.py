"""The recount of a decision: what the planner cannot have meant, and what another scheduler did."""

from tests.services.observer.scene import Scene, group, node, pod


def cluster(cpu_milli: int = 4000) -> Scene:
    scene = Scene()
    scene.begins(node("n0", cpu_milli), groups=[group(least=2)])
    scene.pods(pod("a"), pod("b"))
    return scene


def judged(scene: Scene, *names: str, quorum: int = 0) -> tuple[str, str]:
    found = scene.state.decided(7, scene.binds(*names, quorum=quorum), scene.at_ms)
    assert found is not None
    return found.proof, found.reason


def test_members_that_fit_where_they_are_sent_are_proved() -> None:
    assert judged(cluster(), "a", "b") == ("proved", "")


def test_more_than_the_node_has_fails() -> None:
    assert judged(cluster(1500), "a", "b") == ("failed", "node n0 lacks 500 cpu")


def test_less_than_the_quorum_fails() -> None:
    assert judged(cluster(), "a", quorum=2) == ("failed", "1 bindings, 2 needed")


def test_room_that_another_decision_has_fails_while_that_stands_and_not_after_it() -> None:
    scene = cluster(2000)
    scene.pods(pod("c", "late"))
    assert judged(scene, "a", "b")[0] == "proved"
    decision = scene.binds("c")
    found = scene.state.decided(8, decision, scene.at_ms)
    assert found is not None
    assert found.proof == "failed"
    scene.state.assumed.drop(7)
    scene.state.assumed.drop(8)
    found = scene.state.decided(9, decision, scene.at_ms)
    assert found is not None
    assert found.proof == "proved"


def test_room_that_a_pod_had_when_the_decision_was_made_fails() -> None:
    scene = cluster(2500)
    scene.pods(pod("x", "", on="n0", ours=False))
    assert judged(scene, "a", "b") == ("failed", "node n0 lacks 500 cpu")


def test_room_that_the_other_scheduler_took_since_is_overtaken() -> None:
    scene = cluster(2500)
    decision = scene.binds("a", "b")
    scene.pods(pod("x", "", on="n0", ours=False))
    found = scene.state.decided(7, decision, scene.at_ms)
    assert found == ("overtaken", "node n0 lacks 500 cpu")


def test_a_pod_whose_status_changed_since_was_there_before() -> None:
    scene = cluster(2500)
    scene.pods(pod("x", "", on="n0", ours=False))
    decision = scene.binds("a", "b")
    scene.pods(pod("x", "", on="n0", ours=False))
    found = scene.state.decided(7, decision, scene.at_ms)
    assert found is not None
    assert found.proof == "failed"


def test_a_member_that_the_other_scheduler_bound_since_is_overtaken_and_counted_once() -> None:
    scene = cluster(2000)
    decision = scene.binds("a", "b")
    scene.pods(pod("a", on="n0"))
    found = scene.state.decided(7, decision, scene.at_ms)
    assert found == ("overtaken", "a is on n0")


def test_a_node_that_went_or_shrank_since_is_overtaken() -> None:
    scene = cluster()
    decision = scene.binds("a", "b")
    scene.nodes(node("n0", 1000, version=2))
    found = scene.state.decided(7, decision, scene.at_ms)
    assert found == ("overtaken", "node n0 lacks 1000 cpu")
    scene.begins(pods=[pod("a"), pod("b")], groups=[group()])
    assert judged(scene, "a", "b") == ("overtaken", "node n0 is gone")


def test_nodes_that_pods_name_and_that_do_not_exist_are_forgotten_with_the_pods() -> None:
    scene = cluster()
    before = set(scene.state.cluster_state.loads)
    for number in range(20):
        scene.pods(pod("x", "", on=f"nowhere-{number}", ours=False))
    assert set(scene.state.cluster_state.loads) == before | {"nowhere-19"}
