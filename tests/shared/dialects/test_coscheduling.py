"""PodGroups of the scheduler plugin coscheduling."""

from typing import Any

import pytest

from shared.contracts.verdicts import GangPhase, Verdict
from shared.dialects.coscheduling import DIALECT
from shared.dialects.protocol import JsonObject, ReadingContext
from shared.kube.resources import PODGROUPS_COSCHEDULING
from shared.model.objects import GROUP_NAME_SCOPE, PodGroup
from tests.shared.dialects.reading import group_read, metadata, pod, shape_of

LABEL = {"scheduling.x-k8s.io/pod-group": "g"}
DEADLINE = "tutti.dev/repair-deadline-seconds"


def context(*served: str) -> ReadingContext:
    return ReadingContext(scheduler_names=frozenset({"tutti"}), served=frozenset(served))


def group(annotations: Any = None, **spec: Any) -> PodGroup:
    manifest = {"metadata": metadata(annotations=annotations or {}), "spec": spec}
    return group_read(DIALECT, manifest)


def written(phase: GangPhase, members: int = 0, **counts: Any) -> JsonObject:
    """The status of a group that needs three."""
    found = DIALECT.status(
        Verdict(
            gang_id="uid-one",
            epoch=9,
            at_ms=1,
            dialect="coscheduling",
            namespace="team",
            name="one",
            uid="uid-one",
            phase=phase,
            min_member=3,
            members=members,
            first_seen_ms=1772359200123,
            **counts,
        )
    )
    assert found is not None
    assert (found.resource, found.subresource) == (PODGROUPS_COSCHEDULING, "status")
    assert found.body["metadata"] == {"uid": "uid-one"}
    status: JsonObject = found.body["status"]
    return status


def test_minimum_resources_and_timeout_are_read() -> None:
    found = group(minMember=3, minResources={"cpu": "6"}, scheduleTimeoutSeconds=40)
    assert (found.min_member, found.min_resources) == (3, (("cpu", 6000),))
    assert found.settings == ((DEADLINE, "40"),)
    assert (found.scope, found.waits_for_inqueue, found.errors) == (GROUP_NAME_SCOPE, False, ())
    assert group(minMember=3).settings == ()
    assert group({DEADLINE: "5"}, minMember=3, scheduleTimeoutSeconds=40).settings == (
        (DEADLINE, "5"),
    )


def test_a_list_of_gangs_that_start_together_is_refused_where_it_names_another_gang() -> None:
    """Koordinator reads it on the PodGroup; without the other gangs, this one could start alone."""
    key = "gang.scheduling.koordinator.sh/groups"
    assert group({key: '["team/one"]'}, minMember=3).errors == ()
    (error,) = group({key: '["team/one", "team/two"]'}, minMember=3).errors
    assert error.startswith(f"metadata.annotations[{key}]: is read on pods only")


def test_bad_input_is_reported() -> None:
    found = group(minMember=-1, minResources={"cpu": "much"})
    assert [one.partition(":")[0] for one in found.errors] == [
        "spec.minMember",
        "spec.minResources.cpu",
    ]
    manifest = {"metadata": metadata(), "spec": {"minMember": "x"}}
    assert group_read(DIALECT, manifest).errors


def test_a_label_names_the_group_while_its_crd_is_installed() -> None:
    found = pod({"schedulerName": "tutti"}, labels=LABEL, context=context("coscheduling"))
    assert (found.group_name, found.group_scope) == ("g", GROUP_NAME_SCOPE)
    assert shape_of(found).unsupported == ()
    other = pod({"schedulerName": "tutti"}, labels=LABEL, context=context())
    (refused,) = shape_of(other).unsupported
    assert "install the CRD of scheduling.x-k8s.io" in refused


@pytest.mark.parametrize(
    ("phase", "members", "counts", "expected"),
    [
        ("Pending", 0, {}, "Pending"),
        ("Inqueue", 2, {}, "Pending"),
        ("Inqueue", 3, {}, "Scheduling"),
        ("Starting", 3, {}, "Scheduling"),
        ("Running", 3, {"running": 3}, "Running"),
        ("Running", 4, {"running": 3, "failed": 1}, "Failed"),
        ("Unknown", 3, {"running": 2}, "Unknown"),
        ("Unknown", 3, {"running": 2, "failed": 1}, "Failed"),
        ("Completed", 3, {"succeeded": 3}, "Finished"),
        ("Completed", 3, {"succeeded": 2, "failed": 1}, "Failed"),
    ],
)
def test_each_phase_has_the_plugins_word(
    phase: GangPhase, members: int, counts: dict[str, Any], expected: str
) -> None:
    assert written(phase, members, **counts)["phase"] == expected


def test_counters_and_the_begin_are_written_as_go_writes_them() -> None:
    assert written("Running", 4, running=3, succeeded=1) == {
        "phase": "Running",
        "running": 3,
        "succeeded": 1,
        "failed": None,
        "scheduleStartTime": "2026-03-01T10:00:00Z",
    }
    assert written("Pending")["scheduleStartTime"] is None
    assert (
        DIALECT.status(
            Verdict(
                gang_id="g", epoch=1, at_ms=1, dialect="", namespace="t", name="g", phase="Gone"
            )
        )
        is None
    )
