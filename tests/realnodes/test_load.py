"""What a stream of gangs notices: gangs that are bound in part, lost pods, gangs that wait."""

from typing import Any

from tests.realnodes.load import Gangs


def _pod(uid: str, node: str = "", gang: str = "load-1") -> dict[str, Any]:
    metadata = {"name": f"pod-{uid}", "uid": uid, "labels": {"volcano.sh/job-name": gang}}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}}


def _submitted() -> Gangs:
    gangs = Gangs()
    gangs.submit("load-1", 10.0)
    return gangs


def test_a_gang_waits_until_its_last_pod_has_a_node() -> None:
    gangs = _submitted()
    assert not gangs.observe("ADDED", _pod("a"), 11.0)
    assert not gangs.observe("MODIFIED", _pod("a", "node-1"), 12.0)
    assert gangs.report(12.5).unbound == ["load-1"]
    assert gangs.observe("MODIFIED", _pod("b", "node-2"), 13.0)
    report = gangs.report(20.0)
    assert report.waited_s == {"load-1": 3.0}
    assert report.unbound == []
    assert report.partly_bound_s == {"load-1": 1.0}


def test_the_longest_time_without_a_break_counts_also_while_it_lasts() -> None:
    gangs = _submitted()
    gangs.observe("MODIFIED", _pod("a", "node-1"), 11.0)
    gangs.observe("DELETED", _pod("a", "node-1"), 13.0)
    gangs.observe("MODIFIED", _pod("b", "node-1"), 20.0)
    assert gangs.report(21.0).partly_bound_s == {"load-1": 2.0}
    report = gangs.report(27.0)
    assert report.partly_bound_s == {"load-1": 7.0}
    assert report.lost == ["pod-a"]


def test_pods_of_a_deleted_gang_are_not_lost_and_other_pods_are_nothing() -> None:
    gangs = _submitted()
    for uid in ("a", "b"):
        gangs.observe("MODIFIED", _pod(uid, "node-1"), 11.0)
    assert gangs.take_complete(12.0) == []
    assert gangs.take_complete(100.0) == ["load-1"]
    assert gangs.take_complete(101.0) == []
    assert gangs.all_deleted()
    gangs.observe("DELETED", _pod("a", "node-1"), 102.0)
    gangs.observe("DELETED", _pod("x", "node-1", "another"), 102.0)
    report = gangs.report(200.0)
    assert report.lost == []
    assert report.partly_bound_s == {"load-1": 0.0}
