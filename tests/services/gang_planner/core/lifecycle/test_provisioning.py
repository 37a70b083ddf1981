"""Gangs of queues that ask for ProvisioningRequests (ADR 0087)."""

from typing import Any, Final

import msgspec
import pytest

from shared.contracts import annotations
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.pod_reasons import NewNodes
from shared.contracts.provisioning import RequestName, parse_request_name
from shared.contracts.questions import RequestRefused
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

    def __init__(self, nodes: int = 0, *, leading: bool = True, **queue: Any) -> None:
        super().__init__([make_node(f"node-{index}") for index in range(nodes)], leading=leading)
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

    def refuse(self, request: str, message: str, name: str = "job") -> None:
        """The controller reports that the API server refuses the request."""
        report = RequestRefused(gang_id=f"group-{name}", request=request, message=message)
        self.planner.apply_refusal(report)
        self.settle()

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


def deletion(*requests: str) -> Provisioning:
    """The deletion of these requests, which the cluster state has shown."""
    uids = tuple(f"uid-{one}" for one in requests)
    return Provisioning(obsolete=requests, obsolete_uids=uids)


def conditions_of(verdict: Verdict) -> dict[str, tuple[str, str]]:
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
    assert verdict.provisioning == deletion(wanted.request)
    assert conditions_of(verdict)["Provisioned"][0] == "True"


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
    assert conditions_of(verdict)["ProvisioningFailed"][1].endswith("failed: no capacity in zone a")
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


def test_bookings_that_end_again_before_the_gang_fits_are_followed_after_a_backoff() -> None:
    """An autoscaler that ends each booking at once must not be asked in a loop."""
    scene = Provisioned()
    scene.gang()
    scene.settle()
    first = scene.wanted().request
    scene.answer(first, "BookingExpired")
    scene.settle()
    second = scene.wanted().request
    scene.answer(second, "BookingExpired", "not used")
    scene.settle()
    verdict = scene.verdicts["group-job"]
    assert scene.reason() == PendingReason.PROVISIONING_FAILED
    assert (
        "its capacity is no longer kept: not used"
        in conditions_of(verdict)["ProvisioningFailed"][1]
    )
    assert verdict.provisioning == deletion(first)
    scene.step(after_ms=MINUTE_MS)
    scene.settle()
    assert parse_request_name(scene.wanted().request) == _next(second)
    assert conditions_of(scene.verdicts["group-job"])["ProvisioningFailed"][0] == "False"


def test_a_request_that_was_deleted_by_hand_is_made_again() -> None:
    scene = Provisioned()
    scene.gang()
    scene.settle()
    first = scene.wanted().request
    scene.remove(scene.answer(first, "Accepted"))
    scene.settle()
    assert parse_request_name(scene.wanted().request) == _next(first)


def test_a_request_that_was_created_and_deleted_unseen_is_asked_for_again() -> None:
    """The same one, by its name: it may exist, and only be seen late."""
    scene = Provisioned()
    scene.gang()
    scene.settle()
    first = scene.wanted()
    count = len(scene.published)
    scene.step(after_ms=MINUTE_MS - 1)
    assert len(scene.published) == count
    for repeats in (1, 2):
        scene.step(after_ms=MINUTE_MS)
        scene.settle()
        assert scene.wanted() == msgspec.structs.replace(first, repeats=repeats)
    scene.answer(first.request)
    scene.settle()
    assert scene.wanted() == first
    count = len(scene.published)
    scene.step(after_ms=MINUTE_MS)
    assert len(scene.published) == count, "it is seen"


def test_a_refusal_of_the_api_server_is_in_the_verdict_until_the_request_is_seen() -> None:
    scene = Provisioned()
    scene.gang()
    scene.settle()
    request = scene.wanted().request
    scene.refuse("tutti-group-job-000000000000-1", "of another request")
    assert scene.reason() == PendingReason.AWAITS_PROVISIONING
    scene.refuse(request, "403 Forbidden: exceeded quota")
    verdict = scene.verdicts["group-job"]
    assert scene.reason() == PendingReason.PROVISIONING_FAILED
    assert verdict.why is not None
    assert "the API server refuses it: 403 Forbidden: exceeded quota" in verdict.why.sentence
    (condition,) = (one for one in verdict.conditions if one.type == "ProvisioningFailed")
    assert (condition.status, condition.reason) == ("True", "Refused")
    assert "exceeded quota" in condition.message
    # It is still asked for, and the controller need not report the same again.
    assert scene.wanted().request == request
    assert scene.wanted().refusal == "403 Forbidden: exceeded quota"
    # If the message differs with each attempt, not every one makes a verdict, and so an attempt.
    scene.refuse(request, "403 Forbidden: at 12:00:01")
    assert scene.wanted().refusal == "403 Forbidden: exceeded quota"
    scene.step(after_ms=MINUTE_MS)
    scene.settle()
    assert scene.wanted().repeats == 1
    scene.refuse(request, "403 Forbidden: at 12:01:00")
    assert scene.wanted().refusal == "403 Forbidden: at 12:01:00"
    scene.answer(request, "Accepted")
    scene.settle()
    verdict = scene.verdicts["group-job"]
    assert scene.reason() == PendingReason.AWAITS_PROVISIONING
    assert conditions_of(verdict)["ProvisioningFailed"] == ("False", "")
    assert scene.wanted().refusal == ""


def test_a_request_that_no_autoscaler_accepts_has_a_reason() -> None:
    """cluster-autoscaler leaves a request of a class that it does not know alone."""
    scene = Provisioned()
    scene.ask("misspelt.example.com", resource_version=2)
    scene.gang()
    scene.settle()
    request = scene.wanted().request
    scene.answer(request)
    scene.settle()
    scene.step(after_ms=2 * MINUTE_MS - 1)
    assert "ProvisioningFailed" not in conditions_of(scene.verdicts["group-job"])
    scene.step(after_ms=1)
    verdict = scene.verdicts["group-job"]
    (condition,) = (one for one in verdict.conditions if one.type == "ProvisioningFailed")
    assert (condition.status, condition.reason) == ("True", "NotAccepted")
    assert "misspelt.example.com" in condition.message
    assert scene.reason() == PendingReason.AWAITS_PROVISIONING
    assert "accepted by no autoscaler for two minutes" in _sentence(scene)
    scene.answer(request, "Provisioned")
    scene.settle()
    assert conditions_of(scene.verdicts["group-job"])["ProvisioningFailed"][0] == "False"


def test_nothing_is_created_for_a_gang_that_has_lost_a_member_meanwhile() -> None:
    scene = Provisioned()
    scene.gang()
    scene.settle()
    first = scene.wanted().request
    scene.remove(scene.pods_of("job")[1])
    scene.settle()
    verdict = scene.verdicts["group-job"]
    assert scene.reason() == PendingReason.NOT_ENOUGH_PODS
    assert verdict.provisioning is None
    # A request that exists waits for the new member.
    scene.answer(first, "Accepted")
    scene.settle()
    assert scene.wanted().obsolete == ()
    scene.put(*make_pods("job", 1, WORKER, role="again"))
    scene.settle()
    assert scene.wanted().request == first


def test_requests_of_a_gang_that_is_gone_are_deleted_also_if_they_appear_later() -> None:
    """A controller was creating one while its gang was deleted."""
    scene = Provisioned()
    scene.gang()
    scene.settle()
    request = scene.wanted().request
    scene.remove(*scene.pods_of("job"), make_group("job", 2, queue="q"))
    scene.settle()
    assert scene.wanted() == Provisioning(obsolete=(request,), obsolete_uids=("",))
    scene.published.clear()
    made = scene.answer(request)
    scene.settle()
    (gone,) = scene.published
    assert (gone.gang_id, gone.namespace, gone.phase) == ("group-job", "team", "Gone")
    assert gone.provisioning == deletion(request)
    scene.remove(made)
    scene.settle()
    assert len(scene.published) == 1
    # A planner that takes over finds it, too.
    other = Provisioned(leading=False)
    other.answer(request, "Accepted")
    other.planner.lead(1)
    other.settle()
    assert other.wanted() == deletion(request)


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


def test_a_planner_that_takes_over_asks_for_the_attempt_that_was_asked_for_last() -> None:
    """The controller may be creating it: an earlier attempt would be provided beside it."""
    scene = Provisioned()
    scene.gang()
    scene.settle()
    scene.remove(scene.answer(scene.wanted().request, "Accepted"))
    scene.settle()
    second = scene.wanted().request
    other = Provisioned(leading=False)
    other.gang()
    other.planner.apply_verdict(scene.verdicts["group-job"])
    other.planner.lead(1)
    other.settle()
    assert "group-job" not in other.verdicts, "the published verdict is still right"
    other.step(after_ms=MINUTE_MS)
    other.settle()
    assert other.wanted().request == second
    # A request for other pods is none of it.
    changed = Provisioned(leading=False)
    changed.put(make_group("job", 2, queue="q"), *make_pods("job", 2, LEADER))
    changed.planner.apply_verdict(scene.verdicts["group-job"])
    changed.planner.lead(1)
    changed.settle()
    assert changed.wanted().request.endswith("-1")


@pytest.mark.parametrize("deleted", [False, True])
def test_a_gang_that_is_created_again_under_its_id_requests_nothing_twice(*, deleted: bool) -> None:
    """A gang without a group object has the same id; its request may still exist, or not."""
    scene = Provisioned()
    scene.gang()
    scene.settle()
    first = scene.wanted().request
    made = scene.answer(first, "Accepted")
    scene.settle()
    scene.remove(*scene.pods_of("job"), make_group("job", 2, queue="q"))
    scene.settle()
    assert scene.wanted() == deletion(first)
    if deleted:
        scene.remove(made)
    scene.gang()
    scene.settle()
    assert scene.wanted().request == first
    assert scene.wanted().obsolete == ()


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
    assert scene.wanted() == deletion(first)


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


def test_a_failed_request_leaves_its_quota_to_other_gangs_during_the_backoff() -> None:
    scene = Provisioned(capability=amounts(gpu=3))
    scene.gang("a")
    scene.gang("b")
    scene.settle()
    first = scene.wanted("a").request
    scene.answer(first, "Failed")
    scene.settle()
    assert scene.wanted("b").request
    # Its next attempt waits until the quota suffices.
    scene.step(after_ms=MINUTE_MS)
    scene.settle()
    assert scene.reason("a") == PendingReason.NOT_ENOUGH_QUOTA


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
    assert scene.wanted() == deletion(request)


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
    assert scene.state.gangs.by_id["group-job"].request is None


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
    scene.step(after_ms=60_000)
    assert scene.verdicts["group-plain"].provisioning is None
