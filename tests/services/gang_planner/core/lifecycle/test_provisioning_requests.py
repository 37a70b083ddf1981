"""What the ProvisioningRequest of a gang asks for, and when it is deleted (ADR 0087)."""

from collections import Counter

import msgspec
import pytest

from services.gang_planner.core.lifecycle.promises import PROMISED_MS
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import PodSet, Provisioning
from shared.model.reference_objects import ProvisioningRequest, ProvisioningState
from tests.services.gang_planner.core.lifecycle.test_provisioning import (
    CLASS,
    MINUTE_MS,
    WORKER,
    Provisioned,
    conditions_of,
    deletion,
)
from tests.services.gang_planner.core.scene import (
    GPU,
    amounts,
    make_group,
    make_node,
    make_pods,
)


def placed(class_name: str = CLASS) -> tuple[Provisioned, ProvisioningRequest]:
    """A gang that was placed by its request, which still exists."""
    scene = Provisioned(nodes=2)
    scene.ask(class_name, resource_version=2)
    scene.gang()
    scene.settle()
    found = scene.answer(scene.wanted().request, "Provisioned", "done")
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    scene.step(after_ms=2_000)
    return scene, found


@pytest.mark.parametrize("class_name", [CLASS, "check-capacity.autoscaling.x-k8s.io"])
def test_a_request_is_deleted_when_all_its_pods_are_bound_and_not_before(class_name: str) -> None:
    """cluster-autoscaler books its capacity beside these pods, so other gangs would not get it."""
    scene = Provisioned(nodes=2)
    scene.ask(class_name, resource_version=2)
    scene.gang()
    scene.settle()
    request = scene.wanted().request
    found = scene.answer(request, "Provisioned", "done")
    (decision,) = scene.settle()
    scene.step(after_ms=2_000)
    assert scene.verdicts["group-job"].provisioning is None, "no pod is bound yet"
    scene.bind(decision, only=1)
    scene.step(after_ms=2_000)
    assert scene.verdicts["group-job"].provisioning is None, "one pod is not bound yet"
    scene.run(decision)
    scene.step(after_ms=2_000)
    assert scene.wanted() == deletion(request)
    scene.remove(found)
    scene.step(after_ms=2_000)
    verdict = scene.verdicts["group-job"]
    assert verdict.provisioning is None
    assert conditions_of(verdict)["Provisioned"] == ("True", f"ProvisioningRequest {request}: done")


def test_a_planner_that_takes_over_deletes_the_request_of_a_placed_gang() -> None:
    """The one before it died after the gang was bound."""
    before, found = placed()
    other = Provisioned(nodes=2, leading=False)
    other.put(make_group("job", 2, queue="q"), *before.pods_of("job"))
    other.answer(found.name, "Provisioned")
    other.planner.lead(1)
    other.step()
    other.step(after_ms=2_000)
    assert other.wanted() == deletion(found.name)


def test_a_gang_whose_pods_are_gone_at_once_leaves_no_request_behind() -> None:
    """A cleaner deletes its pods before a controller has deleted the request."""
    scene, found = placed()
    scene.remove_together(*scene.pods_of("job"))
    scene.settle()
    scene.step(after_ms=2_000)
    assert scene.wanted() == deletion(found.name)


def test_the_request_of_the_next_run_is_not_the_one_to_delete() -> None:
    """Both have the same name if the first one is gone by then: their UIDs differ."""
    scene, found = placed()
    assert scene.wanted() == deletion(found.name)
    scene.remove(found)
    scene.remove_together(*scene.pods_of("job"))
    scene.settle()
    scene.step(after_ms=2 * MINUTE_MS)
    scene.put(*make_pods("job", 2, WORKER, role="again"))
    assert scene.settle() == []
    assert scene.wanted().request == found.name
    assert scene.wanted().obsolete == ()
    scene.put(msgspec.structs.replace(found, uid="second", resource_version=99))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    scene.step(after_ms=2_000)
    assert scene.wanted() == Provisioning(obsolete=(found.name,), obsolete_uids=("second",))


def leader(**minimum: int) -> Provisioned:
    """A gang of one pod with one GPU, whose later pods are known by `minResources` alone."""
    scene = Provisioned()
    group = make_group("job", 1, queue="q", dialect="volcano", min_resources=amounts(**minimum))
    scene.put(group, *make_pods("job", 1, WORKER))
    scene.settle()
    return scene


def test_the_later_pods_of_min_resources_are_requested_with_those_that_exist() -> None:
    """An autoscaler that sees the leader alone would add a node for it, and remove it again."""
    scene = leader(gpu=8)
    assert scene.reason() == PendingReason.AWAITS_PROVISIONING
    pod = PodSet(name="job-worker-0", uid="job-worker-0", count=8)
    assert scene.wanted().pod_sets == (pod,)
    scene = leader(gpu=5, cpu=8_000)
    first, *later = scene.wanted().pod_sets
    assert (first.count, first.requests) == (1, ())
    assert {one.name for one in later} == {"job-worker-0"}
    total = Counter[str]()
    for one in later:
        for name, amount in one.requests:
            total[name] += amount * one.count
    assert (total[GPU], total["cpu"]) == (4, 8_000)


def test_a_request_of_the_whole_counts_whole_for_the_quota() -> None:
    scene = Provisioned(capability=amounts(gpu=9))
    for name in ("a", "b"):
        group = make_group(
            name, 1, queue="q", dialect="volcano", min_resources=amounts(gpu=8), uid=f"group-{name}"
        )
        scene.put(group, *make_pods(name, 1, WORKER))
    scene.settle()
    assert scene.wanted("a").request
    assert scene.verdicts["group-b"].provisioning is None


def test_a_request_stays_while_capacity_is_reserved_for_later_pods() -> None:
    """These nodes are free in the eyes of the autoscaler: its booking keeps them."""
    scene = leader(gpu=3)
    request = scene.wanted().request
    scene.answer(request, "Provisioned")
    assert scene.settle() == []
    scene.put(*(make_node(f"node-{index}") for index in range(3)))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.step(after_ms=2_000)
    assert scene.verdicts["group-job"].phase == "Running"
    assert scene.verdicts["group-job"].provisioning is None
    scene.put(*make_pods("job", 2, WORKER, role="later"))
    (decision,) = scene.settle()
    assert len(decision.bindings) == 2
    assert decision.provisioning_request == ""
    scene.run(decision)
    scene.step(after_ms=2_000)
    assert scene.wanted() == deletion(request)


def test_min_resources_of_more_resources_than_a_pod_may_have_are_not_requested() -> None:
    scene = Provisioned()
    wide = tuple((f"example.com/device-{index:03}", 2) for index in range(40))
    group = make_group("job", 1, queue="q", dialect="volcano", min_resources=wide)
    scene.put(group, *make_pods("job", 1, WORKER))
    scene.settle()
    assert scene.reason() == PendingReason.PROVISIONING_UNAVAILABLE
    why = scene.verdicts["group-job"].why
    assert why is not None
    assert "divide into pods of 4" in why.sentence


@pytest.mark.parametrize("state", ["Accepted", "Provisioned"])
def test_a_gang_whose_pods_are_gone_keeps_no_request_and_no_quota(state: ProvisioningState) -> None:
    """Its Job was suspended: nodes would be bought for nothing, and the next gang would wait."""
    scene = Provisioned(capability=amounts(gpu=2))
    scene.gang("suspended")
    scene.settle()
    first = scene.answer(scene.wanted("suspended").request, state)
    scene.gang("next")
    scene.remove_together(*scene.pods_of("suspended"))
    scene.settle()
    scene.step(after_ms=PROMISED_MS - 1_000)
    scene.settle()
    assert scene.verdicts["group-suspended"].provisioning is None
    assert scene.verdicts["group-next"].provisioning is None
    scene.step(after_ms=2_000)
    scene.settle()
    assert scene.wanted("suspended") == deletion(first.name)
    assert scene.wanted("next").request
    # It is resumed.
    scene.remove(first)
    scene.put(*make_pods("suspended", 2, WORKER, role="again"))
    scene.settle()
    assert scene.reason("suspended") == PendingReason.NOT_ENOUGH_QUOTA
    scene.ask(resource_version=3)
    scene.settle()
    assert scene.wanted("suspended").request.endswith("-2")


def test_a_planner_that_takes_over_ends_the_request_of_a_gang_in_a_closed_queue() -> None:
    before = Provisioned()
    before.gang()
    before.settle()
    request = before.wanted().request
    other = Provisioned(leading=False)
    other.gang()
    other.answer(request, "Accepted")
    other.ask(resource_version=2, state="Closed")
    other.planner.lead(1)
    other.settle()
    assert other.reason() == PendingReason.QUEUE_NOT_OPEN
    other.step(after_ms=PROMISED_MS + 1_000)
    other.settle()
    assert other.wanted() == deletion(request)


def test_a_gang_that_gets_its_pods_again_in_time_keeps_its_request() -> None:
    scene = Provisioned()
    scene.gang()
    scene.settle()
    request = scene.wanted().request
    scene.answer(request, "Accepted")
    for number in range(3):
        scene.remove_together(*scene.pods_of("job"))
        scene.step(after_ms=PROMISED_MS - 2_000)
        scene.put(*make_pods("job", 2, WORKER, role=f"again-{number}"))
        scene.step(after_ms=4_000)
        assert scene.wanted().request == request
