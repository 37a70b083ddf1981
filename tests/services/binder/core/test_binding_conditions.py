"""Whether the devices of a claim are attached, and how long a binder waits for that."""

from typing import Any

import msgspec
import pytest

from services.binder.core.claim_preparation import (
    DONE,
    FINALIZER,
    Attachment,
    Progress,
    Write,
    attachment_of,
    device_step,
    device_undo,
)
from services.binder.core.commands import Finish, Limits, Post, Prepare, Undo
from services.binder.core.machine import Machine
from services.binder.core.outcome import Sender
from shared.contracts.decisions import DeviceChoice, DeviceConditions
from tests.services.binder.core.samples import make_decision

DRIVER = "gpu.example.com"
GPU = {"driver": DRIVER, "pool": "fabric", "device": "gpu-0"}
CHOICE = DeviceChoice(
    pod_uid="u-0",
    namespace="team",
    claim="gpus",
    claim_uid="c",
    node="n-0",
    devices=(("r", DRIVER, "fabric", "gpu-0"),),
    conditions=(DeviceConditions(index=0, binding=("Attached", "Ready"), failure=("Broken",)),),
)


def claim(*devices: dict[str, Any], reserved: str = "u-0") -> dict[str, Any]:
    """A claim with an allocated GPU, and the statuses of its devices."""
    result = {
        "request": "r",
        **GPU,
        "bindingConditions": ["Attached", "Ready"],
        "bindingFailureConditions": ["Broken"],
    }
    return {
        "metadata": {"uid": "c", "resourceVersion": "7", "finalizers": [FINALIZER]},
        "spec": {},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"uid": reserved}],
            "devices": list(devices),
        },
    }


def gpu(share: str | None = None, **conditions: str) -> dict[str, Any]:
    found = [
        {"type": kind, "status": status, "reason": "Why", "message": "words"}
        for kind, status in conditions.items()
    ]
    return {**GPU, **({"shareID": share} if share else {}), "conditions": found}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (claim(), Attachment("device gpu-0 waits for the condition Attached")),
        (
            claim(gpu(Attached="True", Ready="Unknown")),
            Attachment("device gpu-0 waits for the condition Ready"),
        ),
        (claim(gpu(Attached="True", Ready="True", Broken="False")), Attachment()),
        (
            claim(gpu(Attached="True", Ready="True", Broken="True")),
            Attachment(failed="device gpu-0 has the condition Broken (Why: words)"),
        ),
        (
            claim(gpu("other", Attached="True", Ready="True")),
            Attachment("device gpu-0 waits for the condition Attached"),
        ),
        ({"metadata": {}}, Attachment()),
    ],
)
def test_all_conditions_of_the_claims_own_devices_count(
    found: dict[str, Any], expected: Attachment
) -> None:
    assert attachment_of(found) == expected


def test_the_allocation_names_the_conditions() -> None:
    unallocated = {**claim(), "status": {}}
    step = device_step(unallocated, CHOICE, "w-0")
    assert isinstance(step, Write)
    (result,) = step.patch["status"]["allocation"]["devices"]["results"]
    assert result["bindingConditions"] == ["Attached", "Ready"]
    assert result["bindingFailureConditions"] == ["Broken"]


def test_a_claim_is_done_once_its_devices_are_attached() -> None:
    step = device_step(claim(gpu(Attached="True")), CHOICE, "w-0")
    assert isinstance(step, Progress)
    assert (step.state, step.attaching) == ("waiting", True)
    assert device_step(claim(gpu(Attached="True", Ready="True")), CHOICE, "w-0") == DONE
    step = device_step(claim(gpu(Broken="True")), CHOICE, "w-0")
    assert isinstance(step, Progress)
    assert step.state == "failed"


def test_devices_of_an_earlier_decision_are_released_unless_they_are_attached() -> None:
    earlier = msgspec.structs.replace(CHOICE, devices=(), conditions=())
    write = device_undo(claim(), earlier)
    assert write is not None
    assert write.patch["status"] == {"reservedFor": None, "allocation": None}
    write = device_undo(claim(gpu(Attached="True", Ready="True")), earlier)
    assert write is not None
    assert write.patch["status"] == {"reservedFor": None}


def test_a_binder_waits_longer_for_devices_than_for_volumes_and_then_undoes_the_gang() -> None:
    decision = msgspec.structs.replace(make_decision(2), devices=(CHOICE,))
    limits = Limits(claims_ms=1_000, attaching_ms=60_000)
    machine = Machine(decision, Sender(binder="b", decision_seq=17, delivered=1), limits)
    assert machine.start(0) == (Prepare(0),)
    waiting = Progress("waiting", "device gpu-0 waits for the condition Ready", attaching=True)
    now_ms = 10
    for _ in range(100):
        found = machine.prepared(0, waiting, now_ms)
        if found == (Undo(0),):
            break
        (again,) = found
        assert isinstance(again, Prepare)
        now_ms += again.delay_ms
    assert 50_000 < now_ms <= 60_010
    (finish,) = machine.undone(0, now_ms)
    assert isinstance(finish, Finish)
    assert finish.outcome.members[0].result == "unprepared"
    assert "after 60000 ms: device gpu-0 waits for the condition Ready" in (
        finish.outcome.members[0].message
    )
    machine = Machine(decision, Sender(binder="b", decision_seq=17, delivered=1), limits)
    machine.start(0)
    machine.prepared(0, waiting, 10)
    assert machine.prepared(0, DONE, 30_000) == (Post(0), Post(1))


def test_a_request_that_fails_does_not_end_the_time_for_attaching() -> None:
    decision = msgspec.structs.replace(make_decision(1), devices=(CHOICE,))
    limits = Limits(claims_ms=1_000, attaching_ms=60_000)
    machine = Machine(decision, Sender(binder="b", decision_seq=17, delivered=1), limits)
    machine.start(0)
    machine.prepared(0, Progress("waiting", "waits", attaching=True), 10)
    (again,) = machine.prepared(0, Progress("again", "HTTP status 503"), 30_000)
    assert isinstance(again, Prepare)
    assert machine.prepared(0, DONE, 31_000) == (Post(0),)
