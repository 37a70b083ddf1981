"""Gangs of Koordinator that pods declare in annotations."""

import msgspec
import pytest

from shared.model.minimums import MemberDeclarations
from shared.model.objects import Pod, PodGroup
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


@pytest.mark.parametrize("text", ["", "[]", '["team/train"]'])
def test_a_list_without_another_gang_changes_nothing(text: str) -> None:
    assert group(groups=text) == group()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("train", "malformed"),
        ('["other"]', '"other" is not a gang as namespace/name'),
        ('["far/other"]', '"far/other" is a gang of another namespace'),
        (msgspec.json.encode([f"team/{n}" for n in range(60)]).decode(), "more than 50 gangs"),
    ],
)
def test_a_list_that_cannot_be_read_is_an_error(text: str, words: str) -> None:
    (error,) = group(groups=text).errors
    assert f"metadata.annotations[{PREFIX}groups]" in error
    assert words in error


def member(name: str, minimum: int, groups: list[str]) -> Pod:
    return pod(
        {"schedulerName": "tutti"},
        name=f"{name}-0",
        uid=f"{name}-0",
        annotations={
            f"{PREFIX}name": name,
            f"{PREFIX}min-available": str(minimum),
            f"{PREFIX}groups": msgspec.json.encode(groups).decode(),
        },
    )


def test_gangs_that_are_admitted_together_are_roles_of_one_gang() -> None:
    """Each pod knows its own gang's minimum; together the pods know all of them."""
    pods = [
        member("workers", 4, ["team/workers", "team/servers"]),
        member("servers", 2, ["team/servers", "team/workers"]),
    ]
    assert [one.role for one in pods] == ["workers", "servers"]
    assert {(one.group_scope, one.group_name) for one in pods} == {
        ("koordinator", "servers,workers")
    }
    first = pods[0].declared_group
    assert first is not None
    assert (first.min_member, first.min_task_member) == (5, (("servers", 1), ("workers", 4)))
    declarations = MemberDeclarations()
    for one in pods:
        declarations.add(one)
    whole = declarations.declared.group
    assert whole is not None
    assert (whole.min_member, whole.min_task_member) == (6, (("servers", 2), ("workers", 4)))
    assert whole.errors == ()


def test_an_error_of_any_of_the_gangs_is_one_of_the_whole() -> None:
    declarations = MemberDeclarations()
    declarations.add(member("a", 4, ["team/a", "team/b"]))
    declarations.add(member("b", -1, ["team/a", "team/b"]))
    whole = declarations.declared.group
    assert whole is not None
    assert "min-available" in whole.errors[0]


def test_long_names_of_gangs_stay_different() -> None:
    names = [f"{'x' * 200}{n}" for n in range(3)]
    first = member(names[0], 1, [f"team/{names[0]}", f"team/{names[1]}"]).group_name
    second = member(names[0], 1, [f"team/{names[0]}", f"team/{names[2]}"]).group_name
    assert first != second
    assert max(len(first), len(second)) <= 253


def test_the_label_of_coscheduling_counts_before_the_annotation() -> None:
    found = pod(
        {"schedulerName": "tutti"},
        labels={"scheduling.x-k8s.io/pod-group": "train"},
        annotations={f"{PREFIX}name": "train", f"{PREFIX}min-available": "3"},
    )
    assert (found.group_scope, found.declared_group) == ("name", None)
