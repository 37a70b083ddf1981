"""The recordings are whole, and comparing with them finds what differs."""

import copy

import pytest

from tests.conformance.explained import EXPLAINED, unexplained
from tests.conformance.normal_form import Names, brief, shown
from tests.conformance.recordings import (
    Object,
    Recorded,
    changes,
    differences,
    merged,
    patched,
    read,
    rebuilt,
    themes,
    without_empty,
)

BEFORE = {"a": 1, "b/c": [1, {"d": 2}], "gone": None, "same": {"x": "y"}}
AFTER = {"a": 2, "b/c": [1, {"d": 3, "e": []}], "new": {"z": 0}, "same": {"x": "y"}}


def a_case() -> Object:
    first: Object = {"Job/a": {"phase": "Running", "running": 1}}
    last: Object = {"Job/a": {"phase": "Completed", "running": None}}
    event = {"object": "Job/a", "type": "Normal", "reason": "Done", "message": "done"}
    return {"name": "a", "steps": [{"record": first}, {"record": last, "events": [event]}]}


def test_every_recorded_case_is_here() -> None:
    admission = sum(len(read(theme)["cases"]) for theme in themes("admission"))
    lifecycle = sum(len(read(theme)["cases"]) for theme in themes("lifecycle"))
    assert (admission, lifecycle) == (730, 218)


def test_a_patch_made_of_the_changes_leads_to_what_was_compared() -> None:
    assert patched(BEFORE, changes(BEFORE, AFTER)) == AFTER
    assert patched(AFTER, changes(AFTER, BEFORE)) == BEFORE


def test_a_merge_patch_takes_away_what_it_nulls() -> None:
    assert merged({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "d": [1]}}) == {
        "a": {"c": 2, "d": [1]}
    }


def test_what_came_out_as_recorded_does_not_differ() -> None:
    assert list(differences(a_case(), rebuilt(a_case()))) == []


def test_a_changed_phase_a_missing_and_an_extra_event_are_found() -> None:
    played = copy.deepcopy(rebuilt(a_case()))
    played[0].state["Job/a"]["phase"] = "Pending"
    extra = {"object": "Pod/p", "type": "Normal", "reason": "Seen", "message": "seen"}
    played[1] = Recorded(played[1].state, [extra])
    found = {one.where: one.what for one in differences(a_case(), played)}
    assert found == {
        "0/Job~1a/phase": '"Pending"',
        "1 event Job/a Done": "missing: done",
        "1 event Pod/p Seen": "extra: seen",
    }


def test_what_differed_between_volcanos_own_runs_is_left_out() -> None:
    case = a_case() | {"unstable": [r"0/Job~1a/.*", "1 event Job/a Done"]}
    played = [Recorded({"Job/a": {"phase": "Failed"}}, []), Recorded({}, [])]
    assert [one.where for one in differences(case, played)] == ["1/Job~1a"]


def test_only_explained_differences_are_forgiven() -> None:
    played = [Recorded({}, []), Recorded({}, [])]
    found = list(differences(a_case(), played))
    assert unexplained("job/a", found) == [one for one in found if not one.is_event]
    assert all(one.why and one.where for one in EXPLAINED)


def test_a_pod_like_every_pod_of_its_job_is_shown_in_one_line() -> None:
    both = {
        "volcano.sh/job-name": "a",
        "volcano.sh/task-spec": "w",
        "volcano.sh/task-index": "0",
        "volcano.sh/queue-name": "q",
    }
    own = {
        "volcano.sh/job-version": "0",
        "volcano.sh/job-retry-count": "1",
        "volcano.sh/template-uid": "a-w",
        "scheduling.k8s.io/group-name": "a-<uid Job/a>",
        "note": "n",
        "tutti.dev/decision": "d",
    }
    pod = {
        "metadata": {
            "name": "a-w-0",
            "labels": {**both, "volcano.sh/job-namespace": "<ns>"},
            "annotations": {**both, **own},
            "ownerReferences": [
                {"kind": "Job", "name": "a", "controller": True, "blockOwnerDeletion": True}
            ],
        },
        "spec": {"schedulerName": "volcano", "containers": [{"name": "main"}]},
        "status": {"phase": "Pending"},
    }
    assert brief("a-w-0", shown("Pod", pod)) == {
        "of": "job a, task w, index 0, queue q, version 0, retry 1",
        "annotations": {"note": "n"},
        "phase": "Pending",
        "node": False,
    }
    pod["metadata"]["labels"].pop("volcano.sh/job-namespace")  # type: ignore[index]  # plain JSON
    assert "of" not in brief("a-w-0", shown("Pod", pod))


def test_names_that_a_run_gives_are_replaced() -> None:
    names = Names("c-trial")
    uid = "0f7f6a3e-1111-4222-8333-123456789abc"
    names.learn("Job", {"metadata": {"name": "a", "uid": uid}})
    pod = {"metadata": {"name": "d-x7f2k", "generateName": "d-", "uid": "other"}}
    names.learn("Pod", pod)
    text = f"a-{uid} on worker-3 in c-trial with d-x7f2k at 2026-01-02T03:04:05Z"
    assert names(text) == "a-<uid Job/a> on <node> in <ns> with d-<1> at <time>"


@pytest.mark.parametrize(
    ("value", "left"),
    [({"a": 0, "b": False, "c": {}}, {"b": False}), ([{"a": None}], [{}]), (0, 0)],
)
def test_empty_members_count_as_absent(value: object, left: object) -> None:
    assert without_empty(value) == left
