"""What is written to claims before pods are bound, in every state that a read can show."""

from typing import Any

import msgspec
import pytest

from services.binder.core.answers import Answer
from services.binder.core.claim_preparation import (
    BIND_COMPLETED,
    BOUND_BY_US,
    DONE,
    FINALIZER,
    SELECTED_NODE,
    WAITING,
    Progress,
    Write,
    device_step,
    device_undo,
    protect,
    volume_step,
    volume_undo,
)
from services.binder.core.commands import Finish, Limits, Post, Prepare, Read, Undo
from services.binder.core.machine import Machine
from services.binder.core.outcome import Sender
from shared.contracts.decisions import DeviceChoice, VolumeChoice
from tests.services.binder.core.samples import BOUND, SILENT, make_decision

LOCAL = VolumeChoice(
    pod_uid="u-0",
    namespace="team",
    claim="data",
    claim_uid="c",
    node="n-0",
    volume="pv",
    volume_uid="v",
)
MADE = VolumeChoice(pod_uid="u-0", namespace="team", claim="data", claim_uid="c", node="n-0")
DEVICE = ("r", "gpu.example.com", "n-0", "gpu-0")
DEVICES = DeviceChoice(
    pod_uid="u-0", namespace="team", claim="gpus", claim_uid="c", node="n-0", devices=(DEVICE,)
)
STAMP = {"uid": "c", "resourceVersion": "7"}


def claim(volume: str = "", uid: str = "c", **notes: str) -> dict[str, Any]:
    metadata = {"uid": uid, "resourceVersion": "7", "annotations": notes}
    return {"metadata": metadata, "spec": {"volumeName": volume}}


def pv(owner: dict[str, Any] | None = None, phase: str = "Available", **notes: str) -> Any:
    metadata = {"uid": "v", "resourceVersion": "8", "annotations": notes}
    spec = {} if owner is None else {"claimRef": owner}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def owner(**fields: str) -> dict[str, str]:
    return {"namespace": "team", "name": "data", **fields}


def test_a_free_volume_is_given_to_the_claim_under_its_own_version() -> None:
    step = volume_step(claim(), pv(), LOCAL, again=False)
    assert isinstance(step, Write)
    assert step.kind == "volume"
    assert step.patch["metadata"]["uid"] == "v"
    assert step.patch["metadata"]["resourceVersion"] == "8"
    assert step.patch["metadata"]["annotations"] == {BOUND_BY_US: "yes"}
    assert step.patch["spec"]["claimRef"]["uid"] == "c"


def test_a_volume_that_its_user_bound_to_the_claim_is_not_called_ours() -> None:
    step = volume_step(claim(), pv(owner()), LOCAL, again=False)
    assert isinstance(step, Write)
    assert "annotations" not in step.patch["metadata"]


@pytest.mark.parametrize(
    ("found", "volume", "choice", "again", "expected"),
    [
        (claim(), pv(owner(uid="c")), LOCAL, True, WAITING),
        (claim("pv"), None, LOCAL, True, WAITING),
        (claim("pv", **{BIND_COMPLETED: "yes"}), None, LOCAL, False, DONE),
        (claim(**{SELECTED_NODE: "n-0"}), None, MADE, True, WAITING),
        (claim("x", **{SELECTED_NODE: "n-0", BIND_COMPLETED: "yes"}), None, MADE, True, DONE),
    ],
    ids=["given", "half bound", "bound", "selected", "made"],
)
def test_what_is_under_way_is_waited_for_and_what_is_complete_is_done(
    found: Any, volume: Any, choice: VolumeChoice, again: bool, expected: Progress
) -> None:
    assert volume_step(found, volume, choice, again=again) == expected


@pytest.mark.parametrize(
    ("found", "volume", "choice", "again"),
    [
        (None, None, LOCAL, False),
        (claim(uid="other"), pv(), LOCAL, False),
        (claim("another"), None, LOCAL, False),
        (claim(), None, LOCAL, False),
        (claim(), pv(owner(uid="other")), LOCAL, False),
        (claim(), pv({"namespace": "team", "name": "x"}), LOCAL, False),
        (claim(), None, MADE, True),
        (claim(**{SELECTED_NODE: "n-1"}), None, MADE, False),
        (claim("x", **{BIND_COMPLETED: "yes"}), None, MADE, True),
    ],
    ids=[
        "claim is gone",
        "claim was made again",
        "bound to another volume",
        "volume is gone",
        "volume is another claim's",
        "volume is reserved",
        "provisioner gave up",
        "selected for another node",
        "bound by another client",
    ],
)
def test_what_can_never_come_true_on_this_node_fails(
    found: Any, volume: Any, choice: VolumeChoice, again: bool
) -> None:
    step = volume_step(found, volume, choice, again=again)
    assert isinstance(step, Progress)
    assert step.state == "failed"


def test_a_provisioner_gets_the_node() -> None:
    assert volume_step(claim(), None, MADE, again=False) == Write(
        "claim", {"metadata": {**STAMP, "annotations": {SELECTED_NODE: "n-0"}}}
    )


def test_only_claims_that_no_provisioner_completed_are_undone() -> None:
    undo = volume_undo(claim(), pv(owner(uid="c"), **{BOUND_BY_US: "yes"}), LOCAL)
    assert undo is not None
    assert undo.patch["spec"] == {"claimRef": None}
    bound = pv(owner(uid="c"), phase="Bound", **{BOUND_BY_US: "yes"})
    assert volume_undo(claim(), bound, LOCAL) is None
    assert volume_undo(claim(), pv(owner(uid="c")), LOCAL) is None
    assert volume_undo(claim("pv"), None, LOCAL) is None


@pytest.mark.parametrize(
    "volume",
    [
        pv(owner(uid="other"), **{BOUND_BY_US: "yes"}),
        pv(owner(uid="c"), **{"example.com/note": "of its user"}),
        msgspec.json.decode(
            msgspec.json.encode(pv(owner(uid="c"), **{BOUND_BY_US: "yes"})).replace(b'"v"', b'"x"')
        ),
    ],
    ids=["another claim's", "bound by its user", "created again under the name"],
)
def test_a_volume_that_is_not_the_decisions_is_not_undone(volume: Any) -> None:
    assert volume_undo(claim(), volume, LOCAL) is None


def test_a_volume_that_was_created_again_under_the_name_is_not_taken() -> None:
    other = pv()
    other["metadata"]["uid"] = "x"
    step = volume_step(claim(), other, LOCAL, again=False)
    assert isinstance(step, Progress)
    assert step.state == "failed"


@pytest.mark.parametrize(
    "metadata",
    [{"uid": "other"}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}],
    ids=["created again", "leaving"],
)
def test_a_device_claim_that_is_not_the_decisions_gets_no_devices(metadata: Any) -> None:
    found = devices()
    found["metadata"] |= metadata
    step = device_step(found, DEVICES, "w-0")
    assert isinstance(step, Progress)
    assert (step.state, step.message) == ("failed", 'resourceclaim "gpus" is gone')


def test_the_finalizer_is_written_under_the_claims_uid() -> None:
    step = protect(DEVICES)
    assert step is not None
    assert step.patch["metadata"]["uid"] == "c"


def test_a_node_that_was_given_to_a_provisioner_stays_until_the_provisioner_removes_it() -> None:
    """It may be making the volume for that node already. With another node, the claim would get a
    volume that cannot be reached from there, and no client could know for which node it was made.
    """
    assert volume_undo(claim(**{SELECTED_NODE: "n-0"}), None, MADE) is None


def devices(**status: Any) -> dict[str, Any]:
    return {"metadata": {**STAMP, "finalizers": [FINALIZER]}, "status": status}


def test_a_device_claim_gets_finalizer_then_devices_and_reservation() -> None:
    bare = {"metadata": dict(STAMP)}
    first = device_step(bare, DEVICES, "w-0")
    assert isinstance(first, Write)
    assert (first.kind, first.patch["metadata"]["finalizers"]) == ("devices", [FINALIZER])
    second = device_step(devices(), DEVICES, "w-0")
    assert isinstance(second, Write)
    assert second.kind == "devices/status"
    status = second.patch["status"]
    assert status["reservedFor"] == [{"resource": "pods", "name": "w-0", "uid": "u-0"}]
    assert status["allocation"]["devices"]["results"][0]["device"] == "gpu-0"
    assert device_step(devices(**status), DEVICES, "w-0") == DONE


def test_a_claim_with_devices_is_only_reserved_and_never_given_others() -> None:
    given = device_step(devices(), DEVICES, "w-9")
    assert isinstance(given, Write)
    status = {**given.patch["status"], "reservedFor": [{"uid": "u-9", "name": "w-9"}]}
    step = device_step(devices(**status), DEVICES, "w-0")
    assert isinstance(step, Write)
    assert [one["uid"] for one in step.patch["status"]["reservedFor"]] == ["u-9", "u-0"]
    assert "allocation" not in step.patch["status"]
    others = DeviceChoice(
        pod_uid="u-0",
        namespace="team",
        claim="gpus",
        claim_uid="c",
        node="n-1",
        devices=(("r", "gpu.example.com", "n-1", "gpu-0"),),
    )
    refused = device_step(devices(**status), others, "w-0")
    assert isinstance(refused, Progress)
    assert refused.state == "failed"


def test_the_last_reservation_that_is_undone_takes_the_devices_along() -> None:
    mine, other = {"uid": "u-0"}, {"uid": "u-9"}
    undo = device_undo(devices(allocation={}, reservedFor=[mine, other]), DEVICES)
    assert undo is not None
    assert undo.patch["status"] == {"reservedFor": [other]}
    undo = device_undo(devices(allocation={}, reservedFor=[mine]), DEVICES)
    assert undo is not None
    assert undo.patch["status"] == {"reservedFor": None, "allocation": None}
    assert device_undo(devices(allocation={}, reservedFor=[other]), DEVICES) is None


def test_devices_that_an_earlier_decision_chose_go_with_the_last_reservation() -> None:
    """Its binder could not release them. Found by the simulation, seed 1007 with all features of
    devices: a claim had devices, and no pod.
    """
    later = msgspec.structs.replace(DEVICES, devices=())
    undo = device_undo(devices(allocation={}, reservedFor=[{"uid": "u-0"}]), later)
    assert undo is not None
    assert undo.patch["status"] == {"reservedFor": None, "allocation": None}


class TestInTheProtocol:
    """Where preparing has its place among the requests of a decision."""

    @staticmethod
    def machine(*, delivered: int = 1, preflight: bool = False) -> Machine:
        decision = make_decision(2, preflight=preflight)
        decision = msgspec.structs.replace(decision, volumes=(LOCAL,), devices=(DEVICES,))
        sender = Sender(binder="b", decision_seq=17, delivered=delivered)
        return Machine(decision, sender, Limits(claims_ms=1_000))

    def test_nothing_is_bound_before_every_claim_is_ready(self) -> None:
        machine = self.machine()
        assert machine.start(0) == (Prepare(0), Prepare(1))
        (again,) = machine.prepared(0, WAITING, 10)
        assert again == Prepare(0, again=True, delay_ms=100)
        assert machine.prepared(1, DONE, 10) == ()
        assert machine.prepared(0, DONE, 200) == (Post(0), Post(1))

    def test_a_preflight_comes_before_anything_is_written(self) -> None:
        machine = self.machine(preflight=True)
        assert machine.start(0) == (Post(0, dry_run=True), Post(1, dry_run=True))
        machine.answered(0, BOUND, 1)
        assert machine.answered(1, BOUND, 1) == (Prepare(0), Prepare(1))

    def test_a_claim_that_fails_keeps_the_whole_gang_unbound_and_is_undone(self) -> None:
        machine = self.machine()
        machine.start(0)
        machine.prepared(1, DONE, 10)
        undo = machine.prepared(0, Progress("failed", "provisioning failed"), 10)
        assert undo == (Undo(0), Undo(1))
        machine.undone(0, 20)
        (finish,) = machine.undone(1, 20)
        assert isinstance(finish, Finish)
        assert finish.outcome.reason == "PreparationFailed"
        assert [(one.uid, one.result, one.message) for one in finish.outcome.members] == [
            ("u-0", "unprepared", "provisioning failed"),
            ("u-1", "skipped", ""),
        ]

    def test_devices_that_may_still_be_given_out_are_taken(self) -> None:
        """The write of the devices went unanswered and another claim failed. Carried out late, it
        would give devices to this claim that the planner has given to another one by then.
        """
        machine = self.machine()
        machine.start(0)
        machine.prepared(1, Progress("again", "no answer", in_doubt=True), 10)
        assert machine.prepared(0, Progress("failed", "provisioning failed"), 10) == ()
        doubtful = Progress("again", "no answer", in_doubt=True)
        assert machine.prepared(1, doubtful, 110) == (Undo(0),)
        (finish,) = machine.undone(0, 120)
        assert isinstance(finish, Finish)
        found = [(one.uid, one.result, one.late) for one in finish.outcome.members]
        assert found == [("u-0", "unprepared", True), ("u-1", "skipped", False)]

    def test_devices_given_out_at_a_second_try_are_in_doubt_no_more(self) -> None:
        machine = self.machine()
        machine.start(0)
        machine.prepared(1, Progress("again", "no answer", in_doubt=True), 10)
        machine.prepared(1, DONE, 110)
        assert machine.prepared(0, Progress("failed", "gone"), 120) == (Undo(0), Undo(1))

    def test_an_undo_without_an_answer_is_done_again_before_anything_is_reported(self) -> None:
        """Carried out late, it would take the devices from a pod that is bound beside them."""
        machine = self.machine()
        machine.start(0)
        machine.prepared(1, DONE, 10)
        machine.prepared(0, Progress("failed", "gone"), 10)
        machine.undone(0, 20)
        (again,) = machine.undone(1, 20, settled=False)
        assert isinstance(again, Undo)
        (finish,) = machine.undone(1, 220)
        assert isinstance(finish, Finish)

    def test_devices_that_no_binder_could_release_stay_taken(self) -> None:
        """The planner may read later that they are the claim's than that its pod is refused."""
        machine = self.machine()
        machine.start(0)
        machine.prepared(1, DONE, 10)
        machine.prepared(0, Progress("failed", "gone"), 10)
        machine.undone(0, 20)
        commands, now_ms = machine.undone(1, 20, settled=False), 20
        while isinstance(commands[0], Undo):
            now_ms += commands[0].delay_ms
            commands = machine.undone(1, now_ms, settled=False)
        (finish,) = commands
        assert isinstance(finish, Finish)
        found = [(one.uid, one.late) for one in finish.outcome.members]
        assert found == [("u-0", True), ("u-1", False)]

    def test_claims_of_a_member_that_may_be_bound_are_not_undone(self) -> None:
        """No answer to its POSTs, nor to its reads: it may be running with its volume."""
        machine = self.machine()
        machine.start(0)
        machine.prepared(0, DONE, 10)
        machine.prepared(1, DONE, 10)
        machine.answered(1, Answer(403, "Forbidden"), 20)
        commands, now_ms = machine.answered(0, SILENT, 20), 20
        while commands and not isinstance(commands[0], Finish):
            (command,) = commands
            assert not isinstance(command, Undo)
            now_ms += getattr(command, "delay_ms", 0)
            if isinstance(command, Read):
                commands = machine.read_back(0, SILENT, now_ms)
            else:
                commands = machine.answered(0, SILENT, now_ms)
        (finish,) = commands
        assert isinstance(finish, Finish)
        assert [one.result for one in finish.outcome.members] == ["unknown", "refused"]

    def test_waiting_has_an_end(self) -> None:
        machine = self.machine()
        machine.start(0)
        machine.prepared(1, DONE, 10)
        now_ms, commands = 10, machine.prepared(0, WAITING, 10)
        while commands and isinstance(commands[0], Prepare):
            now_ms += commands[0].delay_ms
            commands = machine.prepared(0, WAITING, now_ms)
        assert now_ms <= 1_010
        assert commands == (Undo(0), Undo(1))

    def test_a_later_delivery_undoes_nothing_since_it_may_be_in_use(self) -> None:
        machine = self.machine(delivered=2)
        machine.start(0)
        assert machine.looked_up(outcome_exists=False) == (Prepare(0), Prepare(1))
        machine.prepared(1, DONE, 10)
        (finish,) = machine.prepared(0, Progress("failed", "gone"), 10)
        assert isinstance(finish, Finish)
        found = [(one.uid, one.late) for one in finish.outcome.members]
        assert found == [("u-0", True), ("u-1", False)], "its devices are taken"
