"""A duration above its ceiling is stored, and the webhook warns with both values."""

from typing import Any

import pytest

from shared.admission.durations import FIELDS, long_durations
from shared.admission.rules import Case, ReferenceObjects
from shared.dialects.ceilings import LIMITED, Ceilings

CEILINGS = Ceilings(hold_s=100, reserve_s=200, repair_deadline_s=300, minimum_run_s=400)


def case(candidate: dict[str, Any], namespace: str = "evil") -> Case:
    known = ReferenceObjects(scheduler_names=("tutti",), ceilings=CEILINGS)
    return Case(
        operation="CREATE",
        namespace=namespace,
        name="x",
        candidate=candidate,
        old={},
        known=known,
    )


def annotated(key: str, value: str, of: str = "annotations") -> dict[str, Any]:
    return {"metadata": {of: {key: value}}}


@pytest.mark.parametrize(
    ("candidate", "most_s"),
    [
        (annotated("tutti.dev/hold-seconds", "999999999"), 100),
        (annotated("tutti.dev/reserve-seconds", "201"), 200),
        (annotated("tutti.dev/repair-deadline-seconds", "301"), 300),
        (annotated("tutti.dev/minimum-run-seconds", "401"), 400),
        (annotated("volcano.sh/cooldown-time", "999999h"), 400),
        (annotated("volcano.sh/cooldown-time", "401s", "labels"), 400),
        (annotated("gang.scheduling.koordinator.sh/waiting-time", "301s"), 300),
        (
            annotated(
                "yunikorn.apache.org/schedulingPolicyParameters",
                "placeholderTimeoutInSeconds=201 gangSchedulingStyle=Hard",
            ),
            200,
        ),
        ({"spec": {"scheduleTimeoutSeconds": 2**31 - 1}}, 300),
    ],
)
def test_a_longer_duration_is_named_with_the_ceiling(
    candidate: dict[str, Any], most_s: int
) -> None:
    (warning,) = long_durations(case(candidate))
    assert f"is above the ceiling of {most_s} s" in warning
    assert long_durations(case(candidate, namespace="")) == ()


@pytest.mark.parametrize("value", ["", "-1", "100", "soon", "1e9", "9" * 5_000, "٣"])
def test_a_value_within_the_ceiling_or_that_is_no_number_is_not_warned_of(value: str) -> None:
    for key in sorted(LIMITED):
        assert long_durations(case(annotated(key, value))) == ()
    assert long_durations(case({"metadata": [], "spec": {"scheduleTimeoutSeconds": True}})) == ()


def test_each_setting_with_a_ceiling_has_a_field() -> None:
    assert {field.setting for field in FIELDS} == set(LIMITED)


def test_no_warning_is_given_about_objects_of_controllers() -> None:
    candidate = annotated("tutti.dev/hold-seconds", "999999999")
    candidate["metadata"]["ownerReferences"] = [{"controller": True}]
    assert long_durations(case(candidate)) == ()
