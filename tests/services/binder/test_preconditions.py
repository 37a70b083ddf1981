"""What the binder writes meets the objects of its decision, and no later ones of their names.

The API server is the simulation's, which answers preconditions as a real one does
(`tests/api_suite`); a pod or claim is created again under its name at any point of a request.
"""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from services.binder.api import KubePods
from services.binder.core.answers import Answer, PodView
from services.binder.core.claim_preparation import (
    DONE,
    FINALIZER,
    POD_IS_BOUND,
    POD_IS_GONE,
    Preparation,
)
from services.binder.core.extended_claim import GATE_IS_OFF
from shared.contracts.decisions import Binding, DeviceChoice, ExtendedClaim, Victim
from shared.kube.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS
from shared.kube.transport import Reply
from tests.simulation.kube_api import ApiServer, Request, delete
from tests.simulation.kube_client import SimKubeClient
from tests.simulation.kube_server import Etcd, Obj, Write, with_
from tests.simulation.loop import Dice, Generation, SimLoop

CONDITION = {"type": "DisruptionTarget", "status": "True"}


class Desk:
    """The binder's requests to a simulated API server with one pod and one claim."""

    def __init__(self) -> None:
        self.loop = SimLoop(Dice(1))
        self.etcd = Etcd(self.loop, [PODS, RESOURCE_CLAIMS, DEVICE_CLASSES])
        server = ApiServer(self.etcd, on_fault=lambda _: None)
        self.asked: list[Request] = []
        #: Statuses of answers in place of the server's own, by method and end of the path.
        self.refused: dict[tuple[str, str], int] = {}
        #: Called once, before the next write of a claim's status.
        self.before_status: Callable[[], None] | None = None
        carry_out = server.carry_out

        def recorded(request: Request) -> Any:
            self.asked.append(request)
            if request.path.endswith("/gpus/status") and self.before_status is not None:
                act, self.before_status = self.before_status, None
                act()
            for (method, end), status in self.refused.items():
                if request.method == method and request.path.endswith(end):
                    return Reply(status, b"{}", {})
            return carry_out(request)

        server.carry_out = recorded  # type: ignore[method-assign]
        self._generation = Generation(self.loop, "binder-0")
        client = SimKubeClient(server, self._generation)
        self.pods = KubePods(client, timeout_s=5.0, on_health=lambda _: None)
        self.pod = self.make_pod()
        self.claim = self.make_claim()

    def make_pod(self) -> Obj:
        return self._make(PODS, {"metadata": {"name": "w-0"}, "spec": {}, "status": {}})

    def make_claim(self) -> Obj:
        return self._make(RESOURCE_CLAIMS, {"metadata": {"name": "gpus"}, "spec": {}, "status": {}})

    def _make(self, kind: Any, manifest: Obj) -> Obj:
        manifest["metadata"]["namespace"] = "team"
        made = self.etcd.create(kind, manifest, by="user")
        assert made is not None
        return made

    def recreate_pod(self) -> None:
        """Its controller has deleted it, and created another one of its name."""
        delete(self.etcd, PODS, self.now(PODS), by="user", force=True)
        self.make_pod()

    def now(self, kind: Any) -> Obj:
        found = self.etcd.get(kind, "team", "w-0" if kind == PODS else "gpus")
        assert found is not None
        return found

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    @property
    def victim(self) -> Victim:
        return Victim(uid=self.uid, namespace="team", name="w-0")

    @property
    def binding(self) -> Binding:
        return Binding(uid=self.uid, namespace="team", name="w-0", node="n-0")

    def preparation(self, *, extended: bool = False) -> Preparation:
        choice = DeviceChoice(
            pod_uid=self.uid,
            namespace="team",
            claim="gpus",
            claim_uid=self.claim["metadata"]["uid"],
            node="n-0",
            devices=(("r", "gpu.example.com", "n-0", "gpu-0"),),
        )
        if extended:
            made = ExtendedClaim(
                requests=(("r", "gpu", 1),), mappings=(("main", "e.com/gpu", "r"),)
            )
            choice = msgspec.structs.replace(choice, claim_uid="", claim="made", extended=made)
        return Preparation(choice, "w-0")

    def allocated(self) -> bool:
        """Whether any claim has devices."""
        return any(one["status"].get("allocation") for one in self.etcd.all(RESOURCE_CLAIMS))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        task = self.loop.spawn(self._generation, work)
        assert self.loop.run_until(task.done, limit_s=60.0), "it never ended"
        return task.result()


REMOVALS: dict[str, Callable[[Desk], Coroutine[Any, Any, Answer]]] = {
    "deletion": lambda desk: desk.pods.delete(desk.victim),
    "eviction": lambda desk: desk.pods.evict(desk.victim, dry_run=False),
    "proof of an eviction": lambda desk: desk.pods.evict(desk.victim, dry_run=True),
    "mark": lambda desk: desk.pods.mark(desk.victim, CONDITION),
    "binding": lambda desk: desk.pods.bind(desk.binding, {"k": "v"}, dry_run=False),
    "proof of a binding": lambda desk: desk.pods.bind(desk.binding, {"k": "v"}, dry_run=True),
}


@pytest.mark.parametrize("name", REMOVALS)
def test_no_request_meets_a_pod_that_was_created_again_under_the_name(name: str) -> None:
    desk = Desk()
    desk.recreate_pod()
    before = desk.now(PODS)
    answer = desk.run(REMOVALS[name](desk))
    assert answer.status in {409, 422}
    assert desk.now(PODS) == before


@pytest.mark.parametrize("name", REMOVALS)
def test_the_pod_of_the_decision_is_met_and_a_proof_changes_nothing(name: str) -> None:
    desk = Desk()
    before = desk.now(PODS)
    assert 200 <= desk.run(REMOVALS[name](desk)).status < 300
    unchanged = desk.etcd.all(PODS) == [before]
    assert unchanged == name.startswith("proof")


def test_a_read_shows_the_pod_that_is_there_now() -> None:
    desk = Desk()
    desk.recreate_pod()
    gated = {"schedulingGates": [{"name": "quota"}], "nodeName": "n-1"}
    desk.etcd.change(PODS, desk.now(PODS), lambda now: with_(now, spec=gated), by="user")
    view = desk.run(desk.pods.read(desk.victim))
    assert view.uid == desk.now(PODS)["metadata"]["uid"] != desk.uid
    assert (view.gated, view.node, view.deleting) == (True, "n-1", False)


def test_a_read_shows_that_the_pod_is_leaving() -> None:
    desk = Desk()
    leaving(desk)
    assert desk.run(desk.pods.read(desk.victim)) == PodView(desk.uid, deleting=True)


def test_only_a_missing_pod_is_read_as_gone() -> None:
    desk = Desk()
    desk.refused["GET", "/w-0"] = 403
    assert desk.run(desk.pods.read(desk.victim)) == Answer(403, message="{}")
    desk.refused.clear()
    gone(desk)
    assert desk.run(desk.pods.read(desk.victim)) is None


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_the_answer_to_a_mark_shows_whether_the_pod_has_succeeded(phase: str) -> None:
    desk = Desk()
    desk.etcd.change(PODS, desk.pod, lambda now: with_(now, status={"phase": phase}), by="kubelet")
    answer = desk.run(desk.pods.mark(desk.victim, CONDITION))
    assert answer.succeeded == (phase == "Succeeded")


def test_devices_are_allocated_for_a_pod_that_waits() -> None:
    desk = Desk()
    assert desk.run(desk.pods.prepare(desk.preparation(), again=False)) == DONE
    assert desk.allocated()
    assert desk.now(RESOURCE_CLAIMS)["metadata"]["finalizers"] == [FINALIZER]


def gone(desk: Desk) -> None:
    delete(desk.etcd, PODS, desk.now(PODS), by="user", force=True)


def leaving(desk: Desk) -> None:
    at = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    desk.etcd.change(PODS, desk.now(PODS), lambda now: with_(now, metadata=at), by="user")


def bound(desk: Desk) -> None:
    desk.etcd.change(
        PODS, desk.now(PODS), lambda now: with_(now, spec={"nodeName": "n-0"}), by="user"
    )


@pytest.mark.parametrize("extended", [False, True], ids=["claim", "claim for extended resources"])
@pytest.mark.parametrize(
    ("happens", "progress"),
    [
        (gone, POD_IS_GONE),
        (leaving, POD_IS_GONE),
        (Desk.recreate_pod, POD_IS_GONE),
        (bound, POD_IS_BOUND),
    ],
    ids=["gone", "leaving", "created again", "bound by an earlier delivery"],
)
def test_a_pod_that_no_longer_waits_gets_no_devices(
    happens: Callable[[Desk], None], progress: Any, *, extended: bool
) -> None:
    """ADR 0095: the planner frees the devices of a pod that is gone at once, and may have given
    them to another claim.
    """
    desk = Desk()
    preparation = desk.preparation(extended=extended)
    happens(desk)
    found = desk.run(desk.pods.prepare(preparation, again=False))
    assert found.state == progress.state
    # A pod that is gone, or bound, needs no name of its claim either.
    assert found == progress or (extended and progress is POD_IS_BOUND)
    assert not desk.allocated()
    assert desk.etcd.all(RESOURCE_CLAIMS) == [desk.now(RESOURCE_CLAIMS)], "a claim was made"


def test_a_pod_that_goes_while_its_claim_gets_the_finalizer_gets_no_devices() -> None:
    desk = Desk()

    def go(write: Write) -> None:
        if write.resource == RESOURCE_CLAIMS and write.by == "binder-0":
            desk.etcd.observers.clear()
            gone(desk)

    desk.etcd.observers.append(go)
    assert desk.run(desk.pods.prepare(desk.preparation(), again=False)) == POD_IS_GONE
    assert not desk.allocated()


def test_the_pod_is_read_after_the_claim_and_before_its_devices_are_written() -> None:
    desk = Desk()
    desk.run(desk.pods.prepare(desk.preparation(), again=False))
    asked = [(one.method, one.path.rpartition("team/")[2]) for one in desk.asked]
    status = asked.index(("PATCH", "resourceclaims/gpus/status"))
    assert asked[status - 1] == ("GET", "pods/w-0")


def test_finalizers_of_others_stay_in_a_claim() -> None:
    desk = Desk()
    theirs = {"finalizers": ["example.com/theirs"]}
    desk.etcd.change(
        RESOURCE_CLAIMS, desk.claim, lambda now: with_(now, metadata=theirs), by="user"
    )
    assert desk.run(desk.pods.prepare(desk.preparation(), again=False)) == DONE
    found = desk.now(RESOURCE_CLAIMS)["metadata"]["finalizers"]
    assert set(found) == {FINALIZER, "example.com/theirs"}


@pytest.mark.parametrize("again", [False, True])
def test_nothing_is_written_to_a_claim_that_was_created_again_under_the_name(again: bool) -> None:
    desk = Desk()
    preparation = desk.preparation()
    delete(desk.etcd, RESOURCE_CLAIMS, desk.claim, by="user", force=True)
    made = desk.make_claim()
    progress = desk.run(desk.pods.prepare(preparation, again=again))
    assert (progress.state, "is gone" in progress.message) == ("failed", True)
    assert desk.run(desk.pods.undo(preparation))
    assert desk.now(RESOURCE_CLAIMS) == made


@pytest.mark.parametrize(("status", "in_doubt"), [(500, True), (408, True), (409, False)])
def test_devices_whose_write_was_not_answered_are_in_doubt(status: int, in_doubt: bool) -> None:
    desk = Desk()
    desk.refused["PATCH", "/gpus/status"] = status
    progress = desk.run(desk.pods.prepare(desk.preparation(), again=False))
    assert (progress.state, progress.in_doubt) == ("again", in_doubt)


def test_a_release_whose_claim_cannot_be_read_is_tried_again() -> None:
    desk = Desk()
    preparation = desk.preparation()
    desk.refused["GET", "/gpus"] = 500
    assert not desk.run(desk.pods.undo(preparation))


def test_a_server_that_does_not_store_the_name_of_the_claim_fails_the_preparation() -> None:
    """Its feature gate is off: the kubelet would never find the claim."""
    desk = Desk()
    desk.refused["PATCH", "/w-0/status"] = 200
    progress = desk.run(desk.pods.prepare(desk.preparation(extended=True), again=False))
    assert progress.state == "failed"
    assert progress.message == GATE_IS_OFF


OTHER = {"resource": "pods", "name": "w-1", "uid": "u-1"}


def reserve_for_another_pod(desk: Desk) -> None:
    """Another binder prepares a pod that shares the claim."""

    def reserved(now: Obj) -> Obj:
        others = [*(now["status"].get("reservedFor") or ()), OTHER]
        return with_(now, status={"reservedFor": others})

    desk.etcd.change(RESOURCE_CLAIMS, desk.now(RESOURCE_CLAIMS), reserved, by="user")


def test_devices_are_not_written_to_a_claim_that_has_changed_since_it_was_read() -> None:
    desk = Desk()
    desk.before_status = lambda: reserve_for_another_pod(desk)
    assert desk.run(desk.pods.prepare(desk.preparation(), again=False)).state == "again"
    assert desk.now(RESOURCE_CLAIMS)["status"] == {"reservedFor": [OTHER]}


def test_a_release_removes_nothing_from_a_claim_that_has_changed_since_it_was_read() -> None:
    desk = Desk()
    preparation = desk.preparation()
    assert desk.run(desk.pods.prepare(preparation, again=False)) == DONE
    desk.before_status = lambda: reserve_for_another_pod(desk)
    assert not desk.run(desk.pods.undo(preparation)), "it must be tried again"
    assert desk.allocated()
    assert OTHER in desk.now(RESOURCE_CLAIMS)["status"]["reservedFor"]
    # The next attempt leaves the other pod its devices.
    assert desk.run(desk.pods.undo(preparation))
    assert desk.allocated()
    assert desk.now(RESOURCE_CLAIMS)["status"]["reservedFor"] == [OTHER]


def test_a_release_frees_the_devices_of_the_last_pod() -> None:
    desk = Desk()
    preparation = desk.preparation()
    assert desk.run(desk.pods.prepare(preparation, again=False)) == DONE
    assert desk.run(desk.pods.undo(preparation))
    assert not desk.allocated()
