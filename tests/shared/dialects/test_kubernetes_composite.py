"""CompositePodGroups: what is read of them, and the conditions that they get."""

from typing import Any

import pytest

from shared.contracts.verdicts import Condition, Verdict, Why
from shared.dialects.kubernetes_composite import DIALECT, SCOPE
from shared.dialects.protocol import JsonObject
from shared.kube.resources import COMPOSITE_PODGROUPS
from shared.model.objects import NetworkTopology, PodGroup
from tests.shared.dialects.reading import group_read, metadata

KIND = "CompositePodGroupInitiallyScheduled"


def composite(status: Any = None, **spec: Any) -> PodGroup:
    spec = {
        "schedulingPolicy": {"gang": {"minGroupCount": 2}},
        "workloadRef": {"workloadName": "w", "templateName": "t"},
        **spec,
    }
    meta = metadata(annotations={"scheduling.volcano.sh/queue-name": "research"})
    return group_read(DIALECT, {"metadata": meta, "spec": spec, "status": status or {}})


def conditions(*found: Condition, why: Why | None = None) -> list[JsonObject]:
    """The conditions that are written for a verdict with these."""
    verdict = Verdict(
        gang_id="uid-one",
        epoch=9,
        at_ms=1,
        dialect="kubernetes_composite",
        namespace="team",
        name="one",
        uid="uid-one",
        phase="Inqueue",
        conditions=found,
        why=why,
    )
    patch = DIALECT.status(verdict)
    assert patch is not None
    assert (patch.resource, patch.subresource) == (COMPOSITE_PODGROUPS, "status")
    assert (patch.patch_type, patch.body["metadata"]) == ("strategic", {"uid": "uid-one"})
    written: list[JsonObject] = patch.body["status"]["conditions"]
    return written


def test_a_group_of_groups_has_a_number_of_groups_and_no_pods() -> None:
    found = composite()
    assert (found.min_groups, found.min_member, found.made_from) == (2, 0, "w")
    assert (found.queue, found.parent, found.scope, found.errors) == ("research", "", SCOPE, ())
    assert found.shared
    assert composite(schedulingPolicy={"basic": {}}).min_groups == 1


@pytest.mark.parametrize(
    ("mode", "whole"), [(None, False), ({"single": {}}, False), ({"all": {}}, True)]
)
def test_it_may_be_disrupted_only_as_a_whole(mode: object, *, whole: bool) -> None:
    assert composite(disruptionMode=mode).disrupted_whole is whole


def test_it_names_its_parent_its_priority_and_its_topology() -> None:
    found = composite(
        parentCompositePodGroupName="all",
        priority=7,
        preemptionPolicy="Never",
        schedulingConstraints={"topology": [{"key": "rack"}]},
    )
    assert (found.parent, found.parent_scope) == ("all", SCOPE)
    assert (found.priority, found.preempts) == (7, False)
    assert found.topology == NetworkTopology(mode="hard", label_key="rack")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"schedulingPolicy": {"later": {}}}, "spec.schedulingPolicy"),
        (
            {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "spec.schedulingConstraints.topology: 2 keys",
        ),
    ],
)
def test_what_is_not_known_here_is_an_error(spec: Any, words: str) -> None:
    (error,) = composite(**spec).errors
    assert words in error


def test_an_object_that_cannot_be_read_is_reported() -> None:
    manifest = {"metadata": metadata(), "spec": {"schedulingPolicy": 7}}
    found = group_read(DIALECT, manifest)
    assert (found.scope, found.min_groups, len(found.errors)) == (SCOPE, 1, 1)


def test_the_status_says_whether_it_was_scheduled_once() -> None:
    assert composite({"conditions": [{"type": KIND, "status": "True"}]}).scheduled_once
    assert not composite({"conditions": [{"type": KIND, "status": "False"}]}).scheduled_once


@pytest.mark.parametrize(
    ("reason", "written"),
    [
        ("NotEnoughResources", "Unschedulable"),
        ("GroupMissing", "Unschedulable"),
        ("MembersDiffer", "SchedulerError"),
        ("InvalidGroup", "Invalid"),
    ],
)
def test_a_waiting_tree_has_the_reason_of_the_api(reason: str, written: str) -> None:
    (found,) = conditions(why=Why(reason=reason, sentence="because"))
    assert (found["type"], found["status"]) == (KIND, "False")
    assert (found["reason"], found["message"]) == (written, "because")


def test_the_first_success_is_kept() -> None:
    (found,) = conditions(Condition(type="Scheduled", status="True"))
    assert (found["type"], found["status"], found["reason"]) == (KIND, "True", "Scheduled")
    later = Why(reason="NotEnoughResources", sentence="full")
    assert conditions(Condition(type="Scheduled", status="False"), why=later) == []


def test_nothing_is_written_once_the_group_is_gone() -> None:
    gone = Verdict(
        gang_id="g", epoch=1, at_ms=1, dialect="", namespace="team", name="one", phase="Gone"
    )
    assert DIALECT.status(gone) is None
