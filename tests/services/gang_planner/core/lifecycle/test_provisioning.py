"""Gangs of queues that ask for ProvisioningRequests (ADR 0087)."""

from typing import Any, Final

import msgspec
import pytest

from shared.contracts import annotations
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.pod_reasons import NewNodes
from shared.contracts.provisioning import RequestName, parse_request_name
from shared.contracts.verdicts import PodSet, Provisioning, Verdict
from shared.model.objects import Queue
from shared.model.reference_objects import ProvisioningRequest, ProvisioningState
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

CLASS: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
WORKER: Final = make_shape({GPU: 1})
LEADER: Final = make_shape({"cpu": 500})
MINUTE_MS: Final = 60_000


class Provisioned(Scene):
    """A scene with a queue `q` that asks for ProvisioningRequests."""

    def __init__(self, nodes: int = 0, **queue: Any) -> None:
        super().__init__([make_node(f"node-{index}") for index in range(nodes)])
        self.dialects = ("cluster_autoscaler",)
        self.versions = 0
        self.ask(**queue)

    def ask(self, class_name: str = CLASS, parameters: str = "", **queue: Any) -> None:
        """The queue asks for requests of this class."""
        settings = (
            (annotations.PROVISIONING_CLASS, class_name),
            (annotations.PROVISIONING_PARAMETERS, parameters),
        )
        fields = {"dialect": "volcano", "name": "q", "resource_version": 1, **queue}
        self.put(Queue(uid="q", settings=settings, **fields))

    def gang(self, name: str = "job", size: int = 2, **group: Any) -> None:
        self.put(make_group(name, size, queue="q", **group), *make_pods(name, size, WORKER))

    def wanted(self, name: str = "job") -> Provisioning:
        """What the controller is to write for the gang."""
        found = self.verdicts[f"group-{name}"].provisioning
        assert found is not None
        return found

    def answer(
        self, request: str, state: ProvisioningState = "", message: str = ""
    ) -> ProvisioningRequest:
        """The request of this name exists, in this state."""
        name = parse_request_name(request)
        assert name is not None
        self.versions += 1
        found = ProvisioningRequest(
            uid=f"uid-{request}",
            namespace="team",
            name=request,
            resource_version=self.versions,
            gang_id=name.gang_id,
            digest=name.digest,
            attempt=name.attempt,
            state=state,
            message=message,
        )
        self.put(found)
        return found

    def reason(self, name: str = "job") -> str:
        why = self.verdicts[f"group-{name}"].why
        return why.reason if why is not None else ""


def _conditions(verdict: Verdict) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.message) for one in verdict.conditions}


def test_a_gang_waits_for_its_request_and_is_then_placed_whole() -> None:
    scene = Provisioned(nodes=2, parameters="b=2,a=1")
    scene.gang()
    assert scene.settle() == []
    wanted = scene.wanted()
    assert scene.reason() == PendingReason.AWAITS_PROVISIONING
    assert scene.verdicts["group-job"].unschedulable == 0
    assert wanted.class_name == CLASS
    assert wanted.parameters == (("a", "1"), ("b", "2"))
    assert wanted.pod_sets == (PodSet(name="job-worker-0", uid="job-worker-0", count=2),)
    scene.answer(wanted.request, "Accepted", "nodes are being added")
    assert scene.settle() == []
    assert "accepted and not provisioned yet: nodes are being added" in _sentence(scene)
    scene.answer(wanted.request, "Provisioned", "done")
    (decision,) = scene.settle()
    assert len(decision.bindings) == 2
    assert decision.provisioning_request == wanted.request
    assert decision.provisioning_class == CLASS
    scene.run(decision)
    scene.answer(wanted.request, "BookingExpired", "consumed")
    scene.settle()
    scene.step(after_ms=2_000)
    verdict = scene.verdicts["group-job"]
    assert verdict.phase == "Running"
    assert verdict.provisioning is None
    assert _conditions(verdict)["Provisioned"][0] == "True"


def _sentence(scene: Provisioned) -> str:
    scene.step(after_ms=2_000)
    why = scene.verdicts["group-job"].why
    assert why is not None
    return why.sentence


def test_a_gang_whose_nodes_are_still_joining_neither_buys_more_nor_is_overtaken() -> None:
    scene = Provisioned(nodes=1)
    scene.gang()
    scene.settle()
    scene.answer(scene.wanted().request, "Provisioned")
    scene.settle()
    verdict = scene.verdicts["group-job"]
    assert verdict.why is not None
    assert verdict.why.reason == PendingReason.NOT_ENOUGH_RESOURCES
    assert verdict.why.pod_reason == NewNodes.PROVISIONED
    assert verdict.unschedulable == 0
    assert verdict.provisioning is None
    # Another gang, of higher priority, would take the first node, or the second one.
    scene.put(make_group("other", 1, priority=9), *make_pods("other", 1, WORKER))
    assert scene.settle() == []
    assert scene.verdicts["group-other"].unschedulable == 0
    scene.put(make_node("node-1"))
    (decision,) = scene.settle()
    assert decision.gang == "team/job"


def test_capacity_is_kept_no_longer_than_its_gang_waits() -> None:
    scene = Provisioned(nodes=1)
    scene.gang()
    scene.settle()
    request = scene.wanted().request
    scene.answer(request, "Provisioned")
    scene.put(make_group("other", 1), *make_pods("other", 1, WORKER))
    assert scene.settle() == []
    scene.answer(request, "CapacityRevoked")
    (decision,) = scene.settle()
    assert decision.gang == "team/other"


def test_a_failed_request_is_followed_by_another_after_a_backoff() -> None:
    scene = Provisioned(nodes=2)
    scene.gang()
    scene.settle()
    first = scene.wanted().request
    scene.answer(first, "Failed", "no capacity in zone a")
    scene.settle()
    verdict = scene.verdicts["group-job"]
    assert verdict.why is not None
    assert verdict.why.reason == PendingReason.PROVISIONING_FAILED
    assert "no capacity in zone a" in verdict.why.sentence
    assert _conditions(verdict)["ProvisioningFailed"][1].endswith("failed: no capacity in zone a")
    assert verdict.unschedulable == 0
    assert verdict.provisioning is None
    scene.step(after_ms=MINUTE_MS - 1)
    assert scene.verdicts["group-job"].provisioning is None
    scene.step(after_ms=1)
    scene.settle()
    wanted = scene.wanted()
    assert parse_request_name(wanted.request) == _next(first)
    assert wanted.obsolete == (first,)
    # The next wait is twice as long.
    scene.remove(scene.answer(first, "Failed"))
    scene.answer(wanted.request, "CapacityRevoked")
    scene.settle()
    scene.step(after_ms=2 * MINUTE_MS - 1)
    assert scene.reason() == PendingReason.PROVISIONING_FAILED
    scene.step(after_ms=1)
    scene.settle()
    assert parse_request_name(scene.wanted().request) == _next(wanted.request)


def _next(request: str) -> RequestName:
    name = parse_request_name(request)
    assert name is not None
    return name._replace(attempt=name.attempt + 1)


def test_an_expired_booking_of_a_waiting_gang_is_followed_by_another_request_at_once() -> None:
    scene = Provisioned()
    scene.gang()
    scene.settle()
    first = scene.wanted().request
    scene.answer(first, "BookingExpired")
    scene.settle()
    assert scene.reason() == PendingReason.AWAITS_PROVISIONING
    assert parse_request_name(scene.wanted().request) == _next(first)


def test_a_request_that_was_deleted_by_hand_is_made_again() -> None:
    scene = Provisioned()
    scene.gang()
    scene.settle()
    first = scene.wanted().request
    scene.remove(scene.answer(first, "Accepted"))
    scene.settle()
    assert parse_request_name(scene.wanted().request) == _next(first)


def test_a_planner_that_takes_over_continues_with_the_request_that_exists() -> None:
    scene = Provisioned(nodes=2)
    scene.gang()
    scene.settle()
    name = parse_request_name(scene.wanted().request)
    assert name is not None
    second = str(name._replace(attempt=2))
    other = Provisioned(nodes=2)
    other.gang()
    other.answer(second, "Accepted")
    other.answer(str(name), "Failed")
    other.settle()
    assert other.reason() == PendingReason.AWAITS_PROVISIONING
    assert other.wanted().request == second
    assert other.wanted().obsolete == (str(name),)


def test_other_pods_need_another_request_and_new_pods_of_the_same_shape_do_not() -> None:
    scene = Provisioned()
    scene.gang()
    scene.settle()
    first = scene.wanted().request
    scene.answer(first, "Accepted")
    scene.remove(*scene.pods_of("job"))
    scene.settle()
    scene.put(*make_pods("job", 2, WORKER, role="again"))
    scene.settle()
    assert scene.wanted().request == first
    assert scene.wanted().obsolete == ()
    scene.remove(*scene.pods_of("job"))
    scene.put(*make_pods("job", 2, LEADER))
    scene.settle()
    changed = scene.wanted()
    assert changed.request != first
    assert changed.obsolete == (first,)
    scene.ask("other.example.com", resource_version=2)
    scene.settle()
    assert scene.wanted().request not in {first, changed.request}
    scene.ask("", resource_version=3)
    scene.settle()
    assert scene.wanted() == Provisioning(obsolete=(first,))


def test_the_minimum_is_requested_with_roles_first() -> None:
    scene = Provisioned()
    minima = (("leader", 1),)
    scene.put(
        make_group("job", 3, queue="q", dialect="volcano", min_task_member=minima),
        *make_pods("job", 1, LEADER, role="zleader"),
        *make_pods("job", 1, LEADER, role="leader"),
        *make_pods("job", 6, WORKER),
    )
    scene.settle()
    counts = {one.name: one.count for one in scene.wanted().pod_sets}
    assert counts == {"job-leader-0": 1, "job-worker-0": 2}
    request = scene.wanted().request
    scene.put(*make_pods("job", 9, WORKER))
    scene.settle()
    assert scene.wanted().request == request


def test_only_gangs_with_quota_request_capacity() -> None:
    scene = Provisioned(capability=amounts(gpu=3))
    scene.gang("a")
    scene.gang("b")
    scene.settle()
    assert scene.wanted("a").request
    assert scene.verdicts["group-b"].provisioning is None
    assert scene.reason("b") == PendingReason.NOT_ENOUGH_QUOTA
    why = scene.verdicts["group-b"].why
    assert why is not None
    assert "other gangs wait for their ProvisioningRequests" in why.sentence
    assert scene.verdicts["group-b"].unschedulable == 0
    # Its quota is free again when the first gang is gone.
    scene.remove(*scene.pods_of("a"))
    scene.remove(make_group("a", 2, queue="q"))
    scene.settle()
    assert scene.wanted("b").request
    assert scene.verdicts["group-a"].phase == "Gone"
    assert len(scene.wanted("a").obsolete) == 1


def test_a_request_of_a_gang_that_started_without_it_is_deleted() -> None:
    scene = Provisioned(nodes=2)
    scene.gang()
    scene.settle()
    request = scene.wanted().request
    scene.answer(request, "Accepted")
    scene.ask("", resource_version=2)
    (decision,) = scene.settle()
    assert decision.provisioning_request == ""
    scene.run(decision)
    scene.settle()
    assert scene.wanted() == Provisioning(obsolete=(request,))


def test_a_lost_member_of_a_started_gang_is_replaced_without_a_request() -> None:
    scene = Provisioned(nodes=2)
    scene.gang()
    scene.settle()
    scene.answer(scene.wanted().request, "Provisioned")
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    lost = scene.pods_of("job")[0]
    scene.remove(lost)
    scene.put(msgspec.structs.replace(lost, uid="new", name="new", node="", phase="Pending"))
    (again,) = scene.settle()
    assert [one.uid for one in again.bindings] == ["new"]
    assert again.provisioning_request == ""


def test_a_gang_that_starts_again_needs_capacity_that_is_still_kept() -> None:
    scene = Provisioned(nodes=2)
    scene.gang()
    scene.settle()
    first = scene.wanted().request
    scene.answer(first, "Provisioned")
    (decision,) = scene.settle()
    scene.run(decision)
    scene.answer(first, "BookingExpired")
    scene.settle()
    scene.remove_together(*scene.pods_of("job"))
    scene.settle()
    scene.step(after_ms=2 * MINUTE_MS)
    scene.put(*make_pods("job", 2, WORKER, role="again"))
    assert scene.settle() == []
    assert parse_request_name(scene.wanted().request) == _next(first)


def test_without_the_api_the_gang_says_what_is_missing() -> None:
    scene = Provisioned(nodes=2)
    scene.dialects = ()
    scene.gang()
    assert scene.settle() == []
    assert scene.reason() == PendingReason.PROVISIONING_UNAVAILABLE
    sentence = _sentence(scene)
    assert annotations.PROVISIONING_CLASS in sentence
    assert "provisioningrequests.autoscaling.x-k8s.io/v1" in sentence
    scene.dialects = ("cluster_autoscaler",)
    scene.settle()
    assert scene.wanted().request


def test_a_gang_with_too_many_shapes_says_so() -> None:
    scene = Provisioned()
    scene.put(make_group("job", 33, queue="q"))
    for index in range(33):
        scene.put(*make_pods("job", 1, make_shape({"cpu": index + 1}), role=f"r{index}"))
    scene.settle()
    assert scene.reason() == PendingReason.PROVISIONING_UNAVAILABLE
    assert "33 shapes" in _sentence(scene)


@pytest.mark.parametrize("size", [1, 2])
def test_gangs_of_other_queues_have_no_request(size: int) -> None:
    scene = Provisioned(nodes=2)
    scene.put(make_group("plain", size), *make_pods("plain", size, WORKER))
    (decision,) = scene.settle()
    assert decision.provisioning_request == ""
    scene.run(decision)
    scene.settle()
    scene.step(after_ms=60_000)
    assert scene.verdicts["group-plain"].provisioning is None
