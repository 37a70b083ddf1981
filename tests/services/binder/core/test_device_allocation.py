"""The allocation that the binder writes into a claim."""

from typing import Any

import msgspec

from services.binder.core.claim_preparation import FINALIZER, Progress, device_step, needs_classes
from services.binder.core.device_allocation import allocation_of
from shared.contracts.decisions import DeviceChoice, DeviceShare
from shared.model.terms import Requirement, SelectorTerm

DRIVER = "gpu.example.com"
CHOICE = DeviceChoice(
    pod_uid="u-0",
    namespace="team",
    claim="gpus",
    claim_uid="c",
    node="n-0",
    devices=(("a", DRIVER, "n-0", "gpu-0"), ("b/small", DRIVER, "n-0", "gpu-1")),
)


def opaque(value: int, **fields: Any) -> dict[str, Any]:
    return {"opaque": {"driver": DRIVER, "parameters": {"value": value}}, **fields}


def claim(**devices: Any) -> dict[str, Any]:
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu"}},
        {
            "name": "b",
            "firstAvailable": [
                {"name": "large", "deviceClassName": "large"},
                {
                    "name": "small",
                    "deviceClassName": "gpu",
                    "tolerations": [{"key": "broken", "operator": "Exists"}],
                },
            ],
        },
    ]
    return {
        "metadata": {"uid": "c", "resourceVersion": "7", "finalizers": [FINALIZER]},
        "spec": {"devices": {"requests": requests, **devices}},
    }


def test_configuration_of_class_and_claim_comes_with_the_devices_that_it_is_for() -> None:
    classes = {
        "gpu": {"spec": {"config": [opaque(1), opaque(2)]}},
        "large": {"spec": {"config": [opaque(3)]}},
    }
    config = [
        opaque(4),
        opaque(5, requests=["b"]),
        opaque(6, requests=["b/small", "a"]),
        opaque(7, requests=["b/large"]),
    ]
    found = allocation_of(claim(config=config), CHOICE, classes)
    of = ["a", "b/small"]
    assert found["devices"]["config"] == [
        opaque(1, source="FromClass", requests=of),
        opaque(2, source="FromClass", requests=of),
        opaque(4, source="FromClaim"),
        opaque(5, source="FromClaim", requests=["b"]),
        opaque(6, source="FromClaim", requests=["b/small", "a"]),
    ]


def test_tolerations_and_admin_access_come_with_the_device() -> None:
    choice = msgspec.structs.replace(CHOICE, admin=("a",))
    first, second = allocation_of(claim(), choice, {})["devices"]["results"]
    assert first == {
        "request": "a",
        "driver": DRIVER,
        "pool": "n-0",
        "device": "gpu-0",
        "adminAccess": True,
    }
    assert second["tolerations"] == [{"key": "broken", "operator": "Exists"}]
    assert "config" not in allocation_of(claim(), choice, {})["devices"]


def test_every_binder_writes_the_same_share() -> None:
    share = DeviceShare(index=1, capacity=(("memory", "10737418240"),))
    choice = msgspec.structs.replace(CHOICE, shares=(share,))
    first, second = allocation_of(claim(), choice, {})["devices"]["results"]
    assert "shareID" not in first
    assert second["consumedCapacity"] == {"memory": "10737418240"}
    assert second == allocation_of(claim(), choice, {})["devices"]["results"][1]
    other = {**claim(), "metadata": {**claim()["metadata"], "uid": "d"}}
    assert second["shareID"] != allocation_of(other, choice, {})["devices"]["results"][1]["shareID"]


def test_an_allocation_names_the_nodes_on_which_it_can_be_used() -> None:
    there = {"key": "metadata.name", "operator": "In", "values": ["n-0"]}
    assert allocation_of(claim(), CHOICE, {})["nodeSelector"] == {
        "nodeSelectorTerms": [{"matchFields": [there]}]
    }
    term = SelectorTerm(expressions=(Requirement(key="rack", operator="Exists"),))
    choice = msgspec.structs.replace(CHOICE, node_affinity=(term,))
    assert allocation_of(claim(), choice, {})["nodeSelector"] == {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "Exists"}]}]
    }
    everywhere = msgspec.structs.replace(CHOICE, node_affinity=())
    assert "nodeSelector" not in allocation_of(claim(), everywhere, {})


def test_classes_are_needed_for_a_claim_without_allocation_only() -> None:
    choice = msgspec.structs.replace(CHOICE, classes=("gpu",))
    assert needs_classes(claim(), choice)
    assert not needs_classes(claim(), CHOICE)
    assert not needs_classes({**claim(), "status": {"allocation": {}}}, choice)
    assert not needs_classes({"metadata": {"uid": "c"}}, choice), "the finalizer comes first"
    assert not needs_classes(None, choice)


def test_devices_are_not_allocated_without_the_configuration_of_a_class_that_is_gone() -> None:
    choice = msgspec.structs.replace(CHOICE, classes=("gpu",))
    found = device_step(claim(), choice, "w-0", {})
    assert found == Progress("failed", 'deviceclass "gpu" is gone')
