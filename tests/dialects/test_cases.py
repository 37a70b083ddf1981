"""The reader of cases names what is wrong, and the comparison with the cluster can fail."""

from typing import Any

import msgspec
import pytest
from typing_extensions import override

from tests.controlplane.client import Object
from tests.dialects.cases import Case, CaseError, Expected, Manifest, manifests, own, read_file
from tests.dialects.objects import CaseObjects
from tests.dialects.playing import check

GOOD = """
cases:
- title: a case
  feature: whole
  nodes: 1
  objects:
  - apiVersion: v1
    kind: Pod
    numbers: [0, 1]
    metadata: {name: train-$n}
    spec: {x: nvidia.com/gpu}
  expect: {bound: [train-0]}
"""


def read(text: str) -> list[Case]:
    return list(read_file("api/file.yaml", text, "api"))


@pytest.mark.parametrize(
    ("found", "instead", "message"),
    [
        ("nodes: 1", "node: 1", "unknown field `node`"),
        ("{bound: [train-0]}", "{}", "missing required field `bound` - at `$.expect`"),
        ("kind: Pod", "kin: Pod", r"unknown field `kin` - at `$.objects[0]`"),
        ("feature: whole", "not_on: {moon: far}\n  feature: whole", "no cluster 'moon'"),
    ],
)
def test_an_error_names_the_file_the_case_and_the_field(
    found: str, instead: str, message: str
) -> None:
    assert read(GOOD)
    with pytest.raises(CaseError) as error:
        read(GOOD.replace(found, instead))
    assert str(error.value).startswith("api/file.yaml: case 1 (a case): ")
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["cases: {", "cases: 1", "case: []"])
def test_a_file_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(CaseError, match=r"api/file\.yaml: "):
        read(text)


def test_a_case_has_its_own_id_and_resource_and_numbered_objects() -> None:
    (case,) = read(GOOD.replace("x:", "$case:"))
    made = list(manifests(own(case, "c7").steps[0].create))
    assert [one["metadata"]["name"] for one in made] == ["train-0", "train-1"]
    assert made[0]["spec"] == {"c7": "c7.nvidia.com/gpu"}
    assert made[0].keys() == {"apiVersion", "kind", "metadata", "spec"}


def test_an_object_without_numbers_is_sent_as_it_is() -> None:
    one = Manifest(api_version="v1", kind="Pod", metadata={"name": "a-$n"})
    assert [found["metadata"] for found in manifests((one,))] == [{"name": "a-$n"}]


class Shown(CaseObjects):
    """A namespace with these objects."""

    def __init__(self, pods: list[Object], status: Object, events: list[Object]) -> None:
        self._pods, self._status, self._events = pods, status, events

    @override
    async def get(self, reference: str) -> Object:
        return {"status": self._status}

    @override
    async def pods(self) -> list[Object]:
        return self._pods

    @override
    async def events(self) -> list[Object]:
        return self._events


def pod(name: str, node: str = "", message: str | None = None) -> Object:
    waits = {"type": "PodScheduled", "status": "False", "message": message}
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": node} if node else {},
        "status": {"conditions": [] if message is None else [waits]},
    }


SHOWN = Shown(
    [pod("a-0", "c1-n-0"), pod("b-0", message="0 of 1 pods fit")],
    {"phase": "Running", "conditions": [{"type": "Scheduled", "message": "all is ready"}]},
    [
        {
            "involvedObject": {"kind": "PodGroup", "name": "a"},
            "reason": "Scheduled",
            "message": "is ready",
        }
    ],
)
RIGHT: dict[str, Any] = {
    "bound": ["a-0"],
    "on": {"a-0": "n-0"},
    "pods": {"b-*": "pods fit"},
    "status": {"podgroup/a": {"phase": "Running", "conditions.Scheduled.message": "ready"}},
    "events": [{"of": "podgroup.example/a", "reason": "Scheduled", "message": "ready"}],
}


async def test_what_is_as_expected_passes() -> None:
    await check(msgspec.convert(RIGHT, Expected), SHOWN, "c1")
    await check(msgspec.convert({"bound": 1}, Expected), SHOWN, "c1")


@pytest.mark.parametrize(
    "wrong",
    [
        {"bound": []},
        {"bound": 2},
        {"bound": ["a-0", "b-0"]},
        {"on": {"a-0": "n-1"}},
        {"pods": {"b-0": "1 of 1"}},
        {"pods": {"c-*": "pods fit"}},
        {"status": {"podgroup/a": {"phase": "Pending"}}},
        {"status": {"podgroup/a": {"phase": None}}},
        {"status": {"podgroup/a": {"conditions.Unschedulable.status": "True"}}},
        {"status": {"podgroup/a": {"conditions.Scheduled.message": "none"}}},
        {"events": [{"of": "podgroup/b", "reason": "Scheduled"}]},
        {"events": [{"of": "podgroup/a", "reason": "Evict"}]},
        {"events": [{"of": "podgroup/a", "reason": "Scheduled", "message": "waits"}]},
    ],
    ids=str,
)
async def test_what_differs_fails(wrong: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        await check(msgspec.convert({**RIGHT, **wrong}, Expected), SHOWN, "c1")


async def test_an_unbound_pod_must_have_a_reason_unless_it_is_silent() -> None:
    shown = Shown([pod("a-0")], {}, [])
    with pytest.raises(AssertionError, match="without a reason"):
        await check(Expected(bound=()), shown, "c1")
    await check(Expected(bound=(), silent=("a-0",)), shown, "c1")
