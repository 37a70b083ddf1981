"""Gangs of Koordinator that pods declare in annotations."""

import pytest

from shared.model.objects import PodGroup
from tests.shared.dialects.reading import pod, shape_of

PREFIX = "gang.scheduling.koordinator.sh/"
DEADLINE = "tutti.dev/repair-deadline-seconds"


def group(**notes: str) -> PodGroup:
    """The gang of a pod with these annotations of Koordinator."""
    given = {"name": "train", "min-available": "3", **notes}
    annotations = {f"{PREFIX}{key.replace('_', '-')}": text for key, text in given.items()}
    found = pod({"schedulerName": "tutti"}, annotations=annotations)
    assert (found.group_name, found.group_scope) == ("train", "koordinator")
    assert shape_of(found).unsupported == ()
    assert found.declared_group is not None
    return found.declared_group


def test_name_and_minimum_declare_the_gang() -> None:
    found = group(total_number="5", mode="NonStrict")
    assert (found.min_member, found.settings, found.errors) == (3, (), ())


def test_the_waiting_time_limits_partial_binding() -> None:
    assert group(waiting_time="90s").settings == ((DEADLINE, "90"),)
    assert group(waiting_time="soon").settings == ()


@pytest.mark.parametrize("text", ["", "-1", "three"])
def test_a_minimum_that_is_no_number_is_an_error(text: str) -> None:
    (error,) = group(**{"min-available": text}).errors
    assert "must be a number of pods, 0 or more" in error
    assert (f'"{text}"' if text else "missing") in error
    assert "min-available" in error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('["team/train"]', ""),
        ("[]", ""),
        ('["team/train", "team/other"]', "admitted together are not supported"),
        ("train", "groups"),
    ],
)
def test_gangs_that_are_admitted_together_are_not_planned(text: str, words: str) -> None:
    errors = group(groups=text).errors
    assert bool(errors) is bool(words)
    assert words in "".join(errors)


def test_the_label_of_coscheduling_counts_before_the_annotation() -> None:
    found = pod(
        {"schedulerName": "tutti"},
        labels={"scheduling.x-k8s.io/pod-group": "train"},
        annotations={f"{PREFIX}name": "train", f"{PREFIX}min-available": "3"},
    )
    assert (found.group_scope, found.declared_group) == ("name", None)
