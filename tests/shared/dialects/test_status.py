"""What a verdict becomes on the group object of each dialect."""

from typing import Any

import msgspec
import pytest

from shared.contracts.verdicts import Condition, GangPhase, Verdict
from shared.dialects.discovery import dialect as dialect_named
from shared.kube.resources import DISRUPTION_BUDGETS, PODGROUPS_INCUBATOR, PODGROUPS_VOLCANO

disruption_budget, incubator, native, sigs, volcano = map(
    dialect_named, ("disruption_budget", "incubator", "native", "sigs", "volcano")
)

VERDICT = Verdict(
    gang_id="uid-one",
    epoch=9,
    at_ms=1,
    dialect="volcano",
    namespace="team",
    name="one",
    uid="uid-one",
    phase="Inqueue",
    min_member=4,
    members=4,
    pending=3,
    running=1,
    conditions=(
        Condition(
            type="Unschedulable",
            status="True",
            reason="NotEnoughResources",
            message="3/4 tasks in gang unschedulable: 0/4 nodes are available",
            since_ms=1772359200123,
        ),
    ),
    trace_id="ab" * 16,
)


def verdict(phase: GangPhase) -> Verdict:
    return msgspec.structs.replace(VERDICT, phase=phase)


def test_a_volcano_group_takes_status_and_metadata_in_one_patch_of_the_main_resource() -> None:
    patch = volcano.status(VERDICT)
    assert patch is not None
    assert (patch.resource, patch.namespace, patch.name) == (PODGROUPS_VOLCANO, "team", "one")
    assert (patch.subresource, patch.carries_metadata) == ("", True)
    assert patch.body == {
        "metadata": {"uid": "uid-one"},
        "status": {
            "phase": "Inqueue",
            "members": 4,
            "running": 1,
            "succeeded": None,
            "failed": None,
            "conditions": [
                {
                    "type": "Unschedulable",
                    "status": "True",
                    "lastTransitionTime": "2026-03-01T10:00:00Z",
                    "transitionID": "ab" * 16,
                    "reason": "NotEnoughResources",
                    "message": "3/4 tasks in gang unschedulable: 0/4 nodes are available",
                }
            ],
        },
    }


@pytest.mark.parametrize(
    ("phase", "in_volcano", "in_kube_batch"),
    [
        ("Pending", "Pending", "Pending"),
        ("Inqueue", "Inqueue", "Pending"),
        ("Starting", "Inqueue", "Pending"),
        ("Running", "Running", "Running"),
        ("Unknown", "Unknown", "Unknown"),
        ("Completed", "Completed", "Running"),
    ],
)
def test_each_phase_has_its_word_in_each_dialect(
    phase: GangPhase, in_volcano: str, in_kube_batch: str
) -> None:
    def written(dialect: Any) -> Any:
        return dialect.status(verdict(phase)).body["status"]["phase"]

    assert [written(dialect) for dialect in (volcano, incubator, sigs)] == [
        in_volcano,
        in_kube_batch,
        in_kube_batch,
    ]


def test_a_kube_batch_group_is_written_through_its_status_subresource() -> None:
    patch = incubator.status(VERDICT)
    assert patch is not None
    assert (patch.resource, patch.subresource) == (PODGROUPS_INCUBATOR, "status")
    assert not patch.carries_metadata


def test_a_budgets_own_status_is_left_to_kubernetes() -> None:
    patch = disruption_budget.status(VERDICT)
    assert patch is not None
    assert (patch.resource, patch.subresource) == (DISRUPTION_BUDGETS, "")
    assert patch.body == {"metadata": {"uid": "uid-one"}}


@pytest.mark.parametrize("dialect", [volcano, incubator, sigs, disruption_budget, native])
def test_nothing_is_written_once_the_group_is_gone(dialect: Any) -> None:
    assert dialect.status(verdict("Gone")) is None


@pytest.mark.parametrize("dialect", [volcano, incubator, sigs, disruption_budget, native])
def test_nothing_is_written_for_a_gang_without_object(dialect: Any) -> None:
    assert dialect.status(msgspec.structs.replace(VERDICT, uid="")) is None
