"""When the ProvisioningRequest of a gang is deleted (ADR 0087)."""

import msgspec
import pytest

from shared.contracts.verdicts import Provisioning
from shared.model.reference_objects import ProvisioningRequest
from tests.services.gang_planner.core.lifecycle.test_provisioning import (
    CLASS,
    MINUTE_MS,
    WORKER,
    Provisioned,
    conditions_of,
    deletion,
)
from tests.services.gang_planner.core.scene import make_group, make_pods


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
