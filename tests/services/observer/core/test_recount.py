"""The recount of a decision: what the planner cannot have meant, and what the rival did since."""

from tests.services.observer.telling import Telling, group, node, pod


def cluster(cpu_milli: int = 4000) -> Telling:
    told = Telling()
    told.begins(node("n0", cpu_milli), groups=[group(least=2)])
    told.pods(pod("a"), pod("b"))
    return told


def judged(told: Telling, *names: str, quorum: int = 0) -> tuple[str, str]:
    found = told.state.decided(7, told.binds(*names, quorum=quorum), told.at_ms)
    assert found is not None
    return found.proof, found.words


def test_members_that_fit_where_they_are_sent_are_proved() -> None:
    assert judged(cluster(), "a", "b") == ("proved", "")


def test_more_than_the_node_has_fails() -> None:
    assert judged(cluster(1500), "a", "b") == ("failed", "node n0 lacks 500 cpu")


def test_less_than_the_quorum_fails() -> None:
    assert judged(cluster(), "a", quorum=2) == ("failed", "1 bindings, 2 needed")


def test_room_that_another_decision_has_fails_while_that_stands_and_not_after_it() -> None:
    told = cluster(2000)
    told.pods(pod("c", "late"))
    assert judged(told, "a", "b")[0] == "proved"
    decision = told.binds("c")
    found = told.state.decided(8, decision, told.at_ms)
    assert found is not None
    assert found.proof == "failed"
    told.state.standing.drop(7)
    told.state.standing.drop(8)
    found = told.state.decided(9, decision, told.at_ms)
    assert found is not None
    assert found.proof == "proved"


def test_room_that_a_pod_had_when_the_decision_was_made_fails() -> None:
    told = cluster(2500)
    told.pods(pod("x", "", on="n0", ours=False))
    assert judged(told, "a", "b") == ("failed", "node n0 lacks 500 cpu")


def test_room_that_the_rival_took_since_is_overtaken() -> None:
    told = cluster(2500)
    decision = told.binds("a", "b")
    told.pods(pod("x", "", on="n0", ours=False))
    found = told.state.decided(7, decision, told.at_ms)
    assert found == ("overtaken", "node n0 lacks 500 cpu")


def test_a_pod_whose_status_changed_since_was_there_before() -> None:
    told = cluster(2500)
    told.pods(pod("x", "", on="n0", ours=False))
    decision = told.binds("a", "b")
    told.pods(pod("x", "", on="n0", ours=False))
    found = told.state.decided(7, decision, told.at_ms)
    assert found is not None
    assert found.proof == "failed"


def test_a_member_that_the_rival_bound_since_is_overtaken_and_counted_once() -> None:
    told = cluster(2000)
    decision = told.binds("a", "b")
    told.pods(pod("a", on="n0"))
    found = told.state.decided(7, decision, told.at_ms)
    assert found == ("overtaken", "a is on n0")


def test_a_node_that_went_or_shrank_since_is_overtaken() -> None:
    told = cluster()
    decision = told.binds("a", "b")
    told.nodes(node("n0", 1000, version=2))
    found = told.state.decided(7, decision, told.at_ms)
    assert found == ("overtaken", "node n0 lacks 1000 cpu")
    told.begins(pods=[pod("a"), pod("b")], groups=[group()])
    assert judged(told, "a", "b") == ("overtaken", "node n0 is gone")
