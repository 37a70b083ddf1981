"""Objects that are wrong, odd or too large, with no webhook to stop them.

Each leaves a condition that names the field and the rule, or an explanation by `tutti why`; no
service ends; and a good gang that is submitted afterwards is bound. Unlike elsewhere, CRDs without
our validation would let more through than the API server does here: what its schemas refuse is
tested at the readers (tests/shared/dialects).
"""

from collections.abc import AsyncIterator
from typing import Final

import pytest

from shared.contracts import annotations
from tests.controlplane.client import ApiError, Object
from tests.integration.stage import INCUBATOR, SIGS, VOLCANO, Stage

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

INT32_MAX: Final = 2**31 - 1
#: The API server's limit for all annotations of one object, keys included.
ANNOTATIONS_BYTES_MAX: Final = 256 * 1024


@pytest.fixture(autouse=True)
async def unharmed(stage: Stage) -> AsyncIterator[None]:
    """After each test: no service ended or was stuck, and a good gang is bound."""
    before = await stage.suite.pids()
    await stage.nodes(2)
    yield
    await stage.gang("good", 3)
    await stage.bound("good", 3)
    assert await stage.suite.pids() == before


async def test_a_negative_gang_size_is_named_in_the_condition(stage: Stage) -> None:
    """The old API's schema lets it through; Volcano's does not."""
    await stage.group("bad", -1, version=INCUBATOR)
    await stage.members("bad", 2)
    words = "spec.minMember: -1 is negative"
    await stage.waits("bad", "InvalidGroup", words, version=INCUBATOR)
    assert not await stage.placed("bad")
    await stage.why("podgroup/bad", "waits", words)


REFUSED_BY_THE_SCHEMA: Final[list[Object]] = [
    {"minTaskMember": {"ps": "two"}},
    {"minResources": {"cpu": "much"}},
    {"minResources": {"cpu": [1]}},
    {"minMember": 2**40},
    {"minMember": 1.5},
]
SENSELESS: Final[dict[str, tuple[Object, str]]] = {
    "negative-role": ({"minTaskMember": {"ps": -2}}, "spec.minTaskMember.ps: -2 is negative"),
    "negative": ({"minResources": {"cpu": "-1"}}, "spec.minResources.cpu: '-1' is negative"),
    "forty-nines": (
        {"minResources": {"memory": "9" * 40}},
        "is too large: an amount must fit in 63 bits",
    ),
    "an-endless-exponent": (
        {"minResources": {"memory": "1e999999999"}},
        "an amount must fit in 63 bits",
    ),
}


async def test_numbers_that_make_no_sense_are_refused_by_the_schema_or_named_in_the_condition(
    stage: Stage,
) -> None:
    for spec in REFUSED_BY_THE_SCHEMA:
        with pytest.raises(ApiError, match="422"):
            await stage.group("bad", 2, spec=spec)
    for name, (spec, _) in SENSELESS.items():
        await stage.group(name, 2, spec=spec)
        await stage.members(name, 2)
    for name, (_, words) in SENSELESS.items():
        await stage.waits(name, "InvalidGroup", words)
        assert not await stage.placed(name)


async def test_amounts_that_only_overflow_when_they_are_added_wait_for_room(stage: Stage) -> None:
    """Each is below 63 bits, their sum is not."""
    await stage.gang("huge", 4, requests={"memory": str(2**62), "cpu": str(2**53)})
    await stage.waits("huge", "NotEnoughResources", "Insufficient")
    await stage.group("sum", 2, spec={"minResources": {"memory": str(2**62)}})
    await stage.group("sum-2", 2, spec={"minResources": {"memory": str(2**62)}})
    assert not await stage.placed("huge")


async def test_a_pod_whose_containers_overflow_together_is_explained(stage: Stage) -> None:
    asked = {"requests": {"memory": str(2**62)}, "limits": {"memory": str(2**62)}}
    containers = [
        {"name": f"c{index}", "image": "registry.example/none", "resources": asked}
        for index in range(3)
    ]
    await stage.gang("bad", 2, spec={"containers": containers})
    await stage.waits("bad", "Unsupported", "memory")
    assert not await stage.placed("bad")


async def test_a_node_with_amounts_near_the_limit_takes_a_gang(stage: Stage) -> None:
    await stage.nodes(2, prefix="vast-", memory_bytes=2**52, extended={"example.com/x": 2**40})
    requests = {"memory": str(2**50), "example.com/x": str(2**38)}
    await stage.gang("vast", 6, requests=requests)
    await stage.bound("vast", 6)


async def test_a_gang_larger_than_any_cluster_waits_for_its_pods(stage: Stage) -> None:
    await stage.group("endless", INT32_MAX)
    await stage.members("endless", 2)
    await stage.waits("endless", "NotEnoughPods", f"2 of {INT32_MAX} members exist")
    assert not await stage.placed("endless")


async def test_unknown_fields_are_ignored(stage: Stage) -> None:
    unknown: Object = {
        "banana": {"peel": [1, None, {}]},
        "subGroupPolicy": None,
        "networkTopology": {},
    }
    await stage.group("odd", 2, version=INCUBATOR, spec=unknown)
    await stage.members("odd", 2)
    await stage.bound("odd", 2)


async def test_a_known_field_of_the_wrong_type_is_named_in_the_condition(stage: Stage) -> None:
    """The old API's schema does not know minResources, so anything may stand there."""
    await stage.group("odd", 2, version=INCUBATOR, spec={"minResources": 7})
    await stage.members("odd", 2)
    await stage.waits("odd", "InvalidGroup", "$.spec.minResources", version=INCUBATOR)
    assert not await stage.placed("odd")
    await stage.why("pod/odd-0", "waits", "minResources")


async def test_pods_whose_group_does_not_exist_say_so(stage: Stage) -> None:
    await stage.members("nowhere", 2)
    await stage.pods_say("nowhere", 2, words=f"PodGroup {stage.namespace}/nowhere does not exist")
    await stage.why("pod/nowhere-0", "does not exist")
    assert not await stage.placed("nowhere")


async def test_a_group_in_another_namespace_is_not_theirs(stage: Stage) -> None:
    elsewhere = f"/apis/{VOLCANO}/namespaces/default/podgroups"
    manifest = {"metadata": {"name": "shared"}, "spec": {"minMember": 2}}
    await stage.api.create(elsewhere, {"apiVersion": VOLCANO, "kind": "PodGroup", **manifest})
    await stage.members("shared", 2)
    await stage.pods_say("shared", 2, words=f"PodGroup {stage.namespace}/shared does not exist")
    assert not await stage.placed("shared")
    await stage.delete(f"{elsewhere}/shared")


async def test_of_one_name_in_three_dialects_one_counts_and_the_others_say_so(
    stage: Stage,
) -> None:
    await stage.group("same", 3, version=VOLCANO)
    await stage.group("same", 2, version=INCUBATOR)
    await stage.group("same", 1, version=SIGS)
    members = 0
    for version in (VOLCANO, INCUBATOR, SIGS):
        found = await stage.api.get(stage.group_path("same", version))
        members += found["spec"]["minMember"]
    assert members == 6
    await stage.waits("same", "DuplicateGroup", "another dialect declares", version=INCUBATOR)
    await stage.waits("same", "DuplicateGroup", "another dialect declares", version=SIGS)
    await stage.members("same", 2)
    await stage.waits("same", "NotEnoughPods", "2 of 3 members exist")
    assert not await stage.placed("same")
    await stage.members("same", 1, prefix="same-last")
    await stage.bound("same", 3)


async def test_annotations_at_the_api_servers_limit_are_kept_out_of_the_messages(
    stage: Stage,
) -> None:
    """Nothing of ours fits beside them: the status is written nevertheless, or the pods have the
    message.
    """
    key = "example.com/filler"
    filler = {key: "x" * (ANNOTATIONS_BYTES_MAX - len(key))}
    await stage.group("full", 3, notes=filler)
    room = len(annotations.GROUP_NAME) + len("full")
    filler = {key: "x" * (ANNOTATIONS_BYTES_MAX - len(key) - room)}
    await stage.members("full", 2, notes=filler)
    await stage.waits("full", "NotEnoughPods", "2 of 3 members exist")
    await stage.why("podgroup/full", "2 of 3 members exist")
    await stage.members("full", 1, prefix="full-last", notes=filler)
    await stage.bound("full", 3)


async def test_names_and_labels_with_odd_characters_are_taken_as_they_are(stage: Stage) -> None:
    odd = {"example.com/a_b.c-D": "x_y.z-0", "empty": ""}
    await stage.nodes(1, prefix="odd-", labels=odd)
    name = "a.b-" + "c" * 249
    await stage.group(name, 2)
    notes = {
        annotations.TASK_SPEC: "ps \u03b1 \n\t*>. \U0001f3b7" + "r" * 2000,
        annotations.TASK_INDEX: "-99999999999999999999",
        annotations.TRACEPARENT: "00-nonsense",
        "example.com/odd": "\u202e\x00\ufeff",
    }
    await stage.members(name, 2, prefix="odd", notes=notes, spec={"nodeSelector": odd})
    placed = await stage.bound(name, 2)
    assert set(placed.values()) == {"odd-0"}


async def test_a_group_name_that_no_group_can_have_is_a_group_that_does_not_exist(
    stage: Stage,
) -> None:
    names = ("UPPER", "two words", "a" * 300, "*.>", "\u00fc", ".", "x/y")
    for index, name in enumerate(names):
        await stage.members(name, 2, prefix=f"lost-{index}")
    for name in names:
        await stage.pods_say(name, 2, words="does not exist")


async def test_a_gang_that_asks_for_parts_of_devices_gets_the_reason_and_is_never_bound_by_count(
    stage: Stage,
) -> None:
    shared = "volcano.sh/vgpu-number"
    nodes = await stage.nodes(1, prefix="shares-")
    amounts = {"status": {"allocatable": {shared: "8"}, "capacity": {shared: "8"}}}
    await stage.api.patch(f"/api/v1/nodes/{nodes[0]}/status", amounts)
    await stage.gang("parts", 2, requests={"cpu": "1", shared: "1"})
    await stage.waits("parts", "UnsupportedDevice", shared)
    await stage.why("podgroup/parts", "not place by count", shared)
    assert not await stage.placed("parts")


async def test_a_gang_whose_claim_does_not_exist_waits_for_it(stage: Stage) -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    await stage.gang("claims", 2, spec={"volumes": [claim]})
    missing = 'persistentvolumeclaim "data" not found'
    await stage.waits("claims", "NotEnoughResources", missing)
    await stage.why("podgroup/claims", missing)
    assert not await stage.placed("claims")


async def test_a_gang_with_a_gated_pod_waits_until_the_gate_is_lifted(stage: Stage) -> None:
    await stage.group("gated", 2)
    await stage.members("gated", 1)
    gate = {"schedulingGates": [{"name": "example.com/wait"}]}
    await stage.members("gated", 1, prefix="late", spec=gate)
    await stage.waits("gated", "Gated", "1 member has scheduling gates")
    assert not await stage.placed("gated")
    path = stage.path(name="late-0")
    await stage.api.patch(path, {"spec": {"schedulingGates": None}})
    await stage.bound("gated", 2)


async def test_a_queue_that_does_not_exist_or_cannot_be_read_holds_its_gangs(
    stage: Stage,
) -> None:
    await stage.group("lost", 2, spec={"queue": "no-such-queue"})
    await stage.members("lost", 2)
    await stage.waits("lost", "QueueMissing", "queue no-such-queue does not exist")
    queues = f"/apis/{VOLCANO}/queues"
    name = f"q-{stage.namespace}"
    body = {
        "apiVersion": VOLCANO,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"capability": {"cpu": "-4"}},
    }
    await stage.api.create(queues, body)
    await stage.group("held", 2, spec={"queue": name})
    await stage.members("held", 2)
    await stage.waits("held", "QueueNotOpen")
    assert not await stage.placed("held")
    await stage.delete(f"{queues}/{name}")


async def test_a_group_that_changes_its_mind_all_the_time_is_followed(stage: Stage) -> None:
    await stage.group("fickle", 9, version=INCUBATOR)
    await stage.members("fickle", 5)
    path = stage.group_path("fickle", INCUBATOR)
    for size in (-5, 100, INT32_MAX, -INT32_MAX, 4):
        assert not await stage.placed("fickle")
        await stage.api.patch(path, {"spec": {"minMember": size}})
    await stage.bound("fickle", 5)
