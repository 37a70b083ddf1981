"""Decoding of lists and watch lines, above all of malformed ones: none may cost the rest."""

from typing import Any

import msgspec
import pytest

from shared.kinds.podgroup import PodGroup
from shared.kinds.queue import Queue
from shared.kube.decoding import Bookmark, Change, KindDecoder, Undecodable, without_nulls
from shared.kube.errors import ApiError, Gone
from shared.kube.objects import DisruptionBudget, Node, Pod

PODS = KindDecoder(Pod)


def pod(name: str = "web-0", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "7"}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, **fields}


def line(kind: str, thing: object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": thing})


def changed(thing: object) -> Pod:
    change = PODS.change(line("MODIFIED", thing))
    assert isinstance(change, Change)
    assert isinstance(change.object, Pod)
    return change.object


def test_a_pod_is_read_with_everything_that_scheduling_needs() -> None:
    read = changed(
        pod(
            spec={
                "schedulerName": "volcano",
                "nodeSelector": {"disk": "ssd"},
                "priority": 10,
                "hostNetwork": True,
                "containers": [
                    {"name": "c", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": 2}}}
                ],
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
                            ]
                        },
                        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
                    },
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "x"}]
                    },
                },
                "volumes": [
                    {"name": "a", "emptyDir": {}},
                    {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "c", "ephemeral": {"volumeClaimTemplate": {}}},
                ],
                "schedulingGates": [{"name": "wait"}],
                "resourceClaims": [{"name": "gpu"}],
            },
            status={
                "phase": "Pending",
                "containerStatuses": [
                    {"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
                ],
            },
        )
    )
    assert read.metadata.version == 7
    assert read.spec.scheduler_name == "volcano"
    assert read.spec.containers[0].resources.requests == {"cpu": "1", "nvidia.com/gpu": 2}
    affinity = read.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is not None
    terms = affinity.node_affinity.required.node_selector_terms
    assert terms[0].match_expressions[0].operator == "Exists"
    assert affinity.pod_affinity is None
    assert affinity.pod_anti_affinity is not None
    assert len(affinity.pod_anti_affinity.required) == 1
    first, second, third = read.spec.volumes
    assert (first.persistent_volume_claim, first.ephemeral) == (None, None)
    assert second.persistent_volume_claim is not None
    assert second.persistent_volume_claim.claim_name == "data"
    assert third.ephemeral is not None
    assert [gate.name for gate in read.spec.scheduling_gates] == ["wait"]
    assert len(read.spec.resource_claims) == 1
    waiting = read.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "ImagePullBackOff"


def test_times_and_owners_of_metadata_are_read() -> None:
    read = changed(
        {
            "metadata": {
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "deletionTimestamp": "2026-01-02T03:04:06Z",
                "ownerReferences": [
                    {"kind": "Other", "uid": "1"},
                    {
                        "kind": "TFJob",
                        "apiVersion": "kubeflow.org/v1",
                        "uid": "2",
                        "controller": True,
                    },
                ],
            }
        }
    )
    assert read.metadata.created_ms == 1767323045000
    assert read.metadata.deletion_timestamp is not None
    owner = read.metadata.controller
    assert owner is not None
    assert owner.uid == "2"


def test_null_means_absent_wherever_it_stands() -> None:
    read = changed(
        pod(spec={"containers": None, "nodeSelector": None, "tolerations": [None, {"key": None}]})
    )
    assert read.spec.containers == ()
    assert read.spec.node_selector == {}
    assert [toleration.key for toleration in read.spec.tolerations] == [""]


def test_a_malformed_object_comes_with_its_identity_and_the_reason() -> None:
    change = PODS.change(line("ADDED", pod(spec={"containers": "many"})))
    assert isinstance(change, Change)
    assert isinstance(change.object, Undecodable)
    assert change.type == "ADDED"
    assert change.object.metadata.uid == "uid-web-0"
    assert change.object.metadata.version == 7
    assert "$.spec.containers" in change.object.error


@pytest.mark.parametrize(
    ("metadata", "name", "uid"),
    [
        ({"name": "a", "uid": "u", "labels": {"x": 3}}, "a", "u"),
        ({"name": 7, "uid": "u", "ownerReferences": "none"}, "", "u"),
        ("nonsense", "", ""),
        ({}, "", ""),
    ],
)
def test_identity_is_saved_even_from_malformed_metadata(
    metadata: object, name: str, uid: str
) -> None:
    read = PODS.object(msgspec.json.encode({"metadata": metadata, "spec": 1}))
    assert isinstance(read, Undecodable)
    assert (read.metadata.name, read.metadata.uid) == (name, uid)


def test_one_malformed_object_of_a_list_leaves_the_others_whole() -> None:
    items = [pod("a"), pod("b", spec=[]), pod("c", spec={"containers": None})]
    body = {"metadata": {"resourceVersion": "12", "continue": "next"}, "items": items}
    page = PODS.page(msgspec.json.encode(body))
    assert [type(item) for item in page.items] == [Pod, Undecodable, Pod]
    assert [item.metadata.name for item in page.items] == ["a", "b", "c"]
    assert (page.metadata.resource_version, page.metadata.continue_) == ("12", "next")


@pytest.mark.parametrize("items", [None, []])
def test_an_empty_list_may_be_spelt_null(items: object) -> None:
    body = {"metadata": {"resourceVersion": "1"}, "items": items}
    assert PODS.page(msgspec.json.encode(body)).items == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"items":{}}', b'{"items":[1'])
def test_what_is_no_list_is_an_error(body: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        PODS.page(body)


def test_a_bookmark_carries_only_a_version() -> None:
    thing = {
        "kind": "Pod",
        "metadata": {"resourceVersion": "99", "creationTimestamp": None},
        "spec": {"containers": None},
    }
    assert PODS.change(line("BOOKMARK", thing)) == Bookmark("99")


def test_an_error_event_is_raised_as_what_it_stands_for() -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old: 3 (8)"}
    with pytest.raises(Gone, match="too old") as expired:
        PODS.change(line("ERROR", status))
    assert expired.value.reason == "Expired"


@pytest.mark.parametrize("thing", [None, "text", {"code": "x"}, {}])
def test_an_error_event_without_sense_is_still_an_error(thing: object) -> None:
    with pytest.raises(ApiError) as error:
        PODS.change(line("ERROR", thing))
    assert error.value.status == 500


@pytest.mark.parametrize(
    "text",
    [b"garbage", b"{", b"[]", b'"x"', b'{"type":"ADDED","object":', b'{"type":"NEW","object":{}}',
     b'{"object":{}}'],
)  # fmt: skip
def test_what_is_no_event_is_an_error_of_the_stream(text: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        PODS.change(text)


def test_an_event_whose_object_is_no_object_is_undecodable_not_fatal() -> None:
    change = PODS.change(b'{"type":"ADDED","object":3}')
    assert isinstance(change, Change)
    assert isinstance(change.object, Undecodable)


@pytest.mark.parametrize("number", [b"2147483648", b"1" + b"0" * 40, b"-2147483649", b"1.5"])
def test_a_number_that_is_no_int32_makes_an_object_undecodable(number: bytes) -> None:
    body = b'{"metadata":{"name":"g"},"spec":{"minMember":%b}}' % number
    read = KindDecoder(PodGroup).object(body)
    assert isinstance(read, Undecodable)
    assert read.metadata.name == "g"
    assert "$.spec.minMember" in read.error


def test_custom_resources_are_read_with_their_defaults() -> None:
    group = KindDecoder(PodGroup).object(b'{"metadata":{"name":"g"},"spec":{"minMember":3}}')
    assert isinstance(group, PodGroup)
    assert (group.spec.min_member, group.spec.min_resources) == (3, None)
    queue = KindDecoder(Queue).object(b'{"metadata":{"name":"q"},"spec":{"guarantee":null}}')
    assert isinstance(queue, Queue)
    assert (queue.spec.weight, queue.spec.guarantee) == (None, None)
    for given, expected in ((b"3", 3), (b'"50%"', "50%"), (b"null", None)):
        text = b'{"metadata":{},"spec":{"minAvailable":%b,"maxUnavailable":"1%%"}}' % given
        budget = KindDecoder(DisruptionBudget).object(text)
        assert isinstance(budget, DisruptionBudget)
        assert budget.spec.min_available == expected


def test_unknown_fields_are_skipped_not_kept() -> None:
    body = b'{"metadata":{"name":"n","managedFields":[{"x":[1,2,{}]}]},"status":{"images":[]}}'
    assert KindDecoder(Node).object(body) == KindDecoder(Node).object(b'{"metadata":{"name":"n"}}')


def test_nulls_are_removed_at_every_depth() -> None:
    assert without_nulls({"a": None, "b": [None, {"c": None, "d": 0}], "e": ""}) == {
        "b": [{"d": 0}],
        "e": "",
    }
