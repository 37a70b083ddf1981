"""The claim for extended resources of a pod, in every state that a read can show."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from services.binder.claims import KubeClaims
from services.binder.core.answers import Answer
from services.binder.core.claim_preparation import (
    DONE,
    FINALIZER,
    POD_IS_BOUND,
    POD_IS_GONE,
    Preparation,
    Progress,
    Write,
    device_step,
    device_undo,
    pod_step,
)
from services.binder.core.extended_claim import status_undo
from shared.contracts.decisions import DeviceChoice, ExtendedClaim

OF_POD = ExtendedClaim(requests=(("r", "gpu", 1),), mappings=(("main", "example.com/gpu", "r"),))
CHOICE = DeviceChoice(
    pod_uid="u-0",
    namespace="team",
    claim="w-0-x",
    claim_uid="",
    node="n-0",
    devices=(("r", "gpu.example.com", "n-0", "gpu-0"),),
    extended=OF_POD,
)
STAMP = {"uid": "u-0", "resourceVersion": "9"}
NAMED = {
    "resourceClaimName": "w-0-x",
    "requestMappings": [
        {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r"}
    ],
}


def claim(owner: str = "u-0", **status: Any) -> dict[str, Any]:
    metadata = {
        "uid": "c",
        "resourceVersion": "7",
        "finalizers": [FINALIZER],
        "ownerReferences": [{"uid": owner, "controller": True}],
    }
    return {"metadata": metadata, "spec": {}, "status": status}


def pod(uid: str = "u-0", **status: Any) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "resourceVersion": "9"}, "status": status}


def test_a_claim_that_is_missing_is_made_unless_it_had_devices() -> None:
    step = device_step(None, CHOICE, "w-0")
    assert isinstance(step, Write)
    assert step.kind == "devices/create"
    had = msgspec.structs.replace(CHOICE, devices=(), claim_uid="c")
    assert device_step(None, had, "w-0") == Progress("failed", 'resourceclaim "w-0-x" is gone')


def test_a_claim_that_exists_is_allocated_and_one_of_another_pod_is_not() -> None:
    step = device_step(claim(), CHOICE, "w-0")
    assert isinstance(step, Write)
    assert step.kind == "devices/status"
    assert step.patch["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-0"
    step = device_step(claim("other"), CHOICE, "w-0")
    assert isinstance(step, Progress)
    assert step.state == "failed"


def test_an_owner_that_is_not_the_controller_does_not_make_the_claim_the_pods() -> None:
    theirs = claim()
    del theirs["metadata"]["ownerReferences"][0]["controller"]
    step = device_step(theirs, CHOICE, "w-0")
    assert isinstance(step, Progress)
    assert step.state == "failed"


def test_an_undo_releases_the_devices_and_leaves_the_claim() -> None:
    reserved = claim(reservedFor=[{"uid": "u-0"}], allocation={})
    write = device_undo(reserved, CHOICE)
    assert write is not None
    assert write.patch["status"] == {"reservedFor": None, "allocation": None}
    assert device_undo(claim(), CHOICE) is None


def test_the_pod_names_the_claim_under_its_own_version() -> None:
    step = pod_step(pod(), CHOICE)
    assert step == Write(
        "pod/status", {"metadata": STAMP, "status": {"extendedResourceClaimStatus": NAMED}}
    )
    assert pod_step(pod(extendedResourceClaimStatus=NAMED), CHOICE) == DONE
    assert pod_step(pod("other"), CHOICE) == Progress("failed", "the pod is gone")
    assert pod_step(None, msgspec.structs.replace(CHOICE, extended=None)) == DONE


def test_only_the_name_of_this_claim_is_removed_from_the_pod() -> None:
    patch = {"metadata": STAMP, "status": {"extendedResourceClaimStatus": None}}
    assert status_undo(pod(extendedResourceClaimStatus=NAMED), CHOICE) == patch
    assert status_undo(pod(), CHOICE) is None
    other = {**NAMED, "resourceClaimName": "other"}
    assert status_undo(pod(extendedResourceClaimStatus=other), CHOICE) is None
    assert status_undo(pod("other", extendedResourceClaimStatus=NAMED), CHOICE) is None
    assert status_undo(None, CHOICE) is None


_DONE = Answer(200)
Send = Callable[[str, str, object, str], Awaitable[tuple[Answer, bytes]]]


def server(
    pod_status: dict[str, Any], *, pod_patch: Answer, claim_patch: Answer = _DONE
) -> tuple[Send, list[str]]:
    """An API server with a prepared claim, that answers this to patches of the pod and the
    claim.
    """
    sent: list[str] = []
    made = claim(reservedFor=[{"uid": "u-0"}], allocation=_ALLOCATION)

    async def send(method: str, path: str, _body: object, _type: str) -> tuple[Answer, bytes]:
        of_pod = "/pods/" in path
        if method == "GET":
            return Answer(200), msgspec.json.encode(pod(**pod_status) if of_pod else made)
        sent.append(path.rsplit("/", 3)[1 if not path.endswith("/status") else -3])
        return (pod_patch if of_pod else claim_patch), msgspec.json.encode(pod(**pod_status))

    return send, sent


_ALLOCATION = {
    "devices": {
        "results": [{"request": "r", "driver": "gpu.example.com", "pool": "n-0", "device": "gpu-0"}]
    }
}


@pytest.mark.parametrize("answer", [Answer(0), Answer(500)])
async def test_a_pod_whose_status_may_name_the_claim_later_is_in_doubt(answer: Answer) -> None:
    send, _ = server({}, pod_patch=answer)
    progress = await KubeClaims(send).prepare(Preparation(CHOICE, "w-0"), again=False)
    assert (progress.state, progress.in_doubt) == ("again", True)


@pytest.mark.parametrize("answer", [Answer(0), Answer(409)])
async def test_devices_are_not_released_while_the_pod_names_their_claim(answer: Answer) -> None:
    """On a node with a device plugin it would never start."""
    send, sent = server({"extendedResourceClaimStatus": NAMED}, pod_patch=answer)
    assert not await KubeClaims(send).undo(Preparation(CHOICE, "w-0"))
    assert sent == ["pods"]


@pytest.mark.parametrize("answer", [Answer(0), Answer(403), Answer(409), Answer(429)])
async def test_an_undo_is_done_only_when_the_claim_has_lost_its_devices(answer: Answer) -> None:
    """Otherwise the planner would give them to another claim."""
    send, sent = server({}, pod_patch=_DONE, claim_patch=answer)
    assert not await KubeClaims(send).undo(Preparation(CHOICE, "w-0"))
    send, sent = server({}, pod_patch=_DONE)
    assert await KubeClaims(send).undo(Preparation(CHOICE, "w-0"))
    assert sent == ["resourceclaims"]


@pytest.mark.parametrize("there", ["none", "other", "leaving", "bound"])
async def test_no_claim_is_made_for_a_pod_that_is_gone(there: str) -> None:
    """The planner has given its devices to another claim by then."""
    found = pod("other" if there == "other" else "u-0")
    if there == "leaving":
        found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    if there == "bound":
        found["spec"] = {"nodeName": "n-0"}

    async def send(method: str, path: str, _body: object, _type: str) -> tuple[Answer, bytes]:
        assert method == "GET"
        if "/pods/" in path and there != "none":
            return Answer(200), msgspec.json.encode(found)
        return Answer(404), b"{}"

    progress = await KubeClaims(send).prepare(Preparation(CHOICE, "w-0"), again=False)
    assert progress == (POD_IS_BOUND if there == "bound" else POD_IS_GONE)
