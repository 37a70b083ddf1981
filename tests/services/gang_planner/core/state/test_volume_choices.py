"""Which volumes count as chosen, and which choices of the log a pod takes up."""

from typing import Any

import msgspec
import pytest

from services.gang_planner.core.state import claim_choices
from services.gang_planner.core.state.storage.ledger import Choice, Storage
from shared.contracts.decisions import GangDecision, VolumeChoice
from shared.model.objects import Pod
from shared.model.reference_objects import Claim, CsiDriver
from tests.services.gang_planner.core.claims import (
    bound_to,
    hosts,
    make_claim,
    make_class,
    make_volume,
    members,
)
from tests.services.gang_planner.core.scene import Scene, make_group

DATA = ("team", "data")


def with_volumes(*volumes: tuple[str, str]) -> tuple[Scene, Storage]:
    """Two nodes, volumes on them, and the claim `data` without one."""
    scene = Scene(hosts(2))
    scene.put(make_class(), *(make_volume(name, node) for name, node in volumes))
    scene.put(make_claim("data"))
    return scene, scene.state.node_capacity.storage


def bound_by_another_scheduler(node: str, claim: str = "data") -> Pod:
    (pod,) = members("g", [(claim,)])
    return msgspec.structs.replace(pod, node=node, phase="Running")


def test_a_volume_that_was_chosen_from_a_long_list_is_not_chosen_again() -> None:
    scene, _ = with_volumes(*((f"v{number}", "n0") for number in range(6)))
    chosen: list[str] = []
    for name in "abc":
        scene.put(make_claim(name), make_group(name, 1), *members(name, [(name,)]))
        (decision,) = scene.settle()
        chosen += [one.volume for one in decision.volumes]
    assert chosen == ["v0", "v1", "v2"]


@pytest.mark.parametrize(
    "claim",
    [
        msgspec.structs.replace(make_claim("data"), uid="created-again"),
        bound_to("data", "a"),
    ],
    ids=["created again", "bound"],
)
def test_a_choice_ends_with_its_claim_or_when_that_is_bound(claim: Claim) -> None:
    scene, storage = with_volumes(("a", "n0"))
    scene.put(make_group("g", 1), *members("g", [("data",)]))
    scene.settle()
    assert storage.find(DATA) == Choice("n0", "pvc-data", "a", "pv-a")
    if claim.uid != "pvc-data":
        scene.remove(make_claim("data"))
    scene.put(claim)
    assert storage.find(DATA) is None


def test_a_volume_that_the_log_gives_to_a_claim_is_no_other_claims() -> None:
    scene, storage = with_volumes(("a", "n0"))
    scene.put(make_group("g", 1), bound_by_another_scheduler("n0"), make_claim("logged"))
    storage.pin(("team", "logged"), Choice("n0", "pvc-logged", "a", "pv-a"))
    assert storage.find(DATA) is None
    assert storage.contradiction() == ""


def test_a_volume_of_the_log_is_no_longer_that_of_a_claim_that_had_it_in_the_log() -> None:
    scene, storage = with_volumes(("a", "n0"))
    storage.pin(DATA, Choice("n0", "pvc-data", "a", "pv-a"))
    storage.pin(("team", "later"), Choice("n0", "pvc-later", "a", "pv-a"))
    assert storage.contradiction() == ""
    scene.put(make_group("g", 1), bound_by_another_scheduler("n0"))
    assert storage.find(DATA) is None


def test_a_volume_that_is_chosen_and_does_not_count_as_such_is_named() -> None:
    scene, storage = with_volumes(("a", "n0"))
    scene.put(make_group("g", 1), bound_by_another_scheduler("n0"))
    storage.holders.clear()
    assert "pv-a" in storage.contradiction()


def test_a_volume_of_the_log_for_another_node_does_not_replace_that_of_a_claim_in_use() -> None:
    scene, storage = with_volumes(("a", "n0"), ("b", "n1"))
    scene.put(make_group("g", 1), bound_by_another_scheduler("n1"))
    storage.pin(DATA, Choice("n0", "pvc-data", "a", "pv-a"))
    assert storage.find(DATA) == Choice("n1", "pvc-data", "b", "pv-b")
    assert storage.contradiction() == ""


def test_a_volume_of_the_log_for_another_node_is_not_taken_up_and_no_other_is_chosen() -> None:
    scene, storage = with_volumes(("a", "n0"), ("b", "n1"))
    storage.pin(DATA, Choice("n0", "pvc-data", "a", "pv-a"))
    scene.put(make_group("g", 1), bound_by_another_scheduler("n1"))
    assert storage.find(DATA) is None
    assert storage.contradiction() == ""


def test_a_volume_of_the_log_for_a_claim_that_was_created_again_is_not_taken_up() -> None:
    scene, storage = with_volumes(("a", "n0"), ("b", "n1"), ("c", "n1"))
    storage.pin(DATA, Choice("n1", "of-another-life", "c", "pv-c"))
    scene.put(make_group("g", 1), bound_by_another_scheduler("n1"))
    assert storage.find(DATA) == Choice("n1", "pvc-data", "b", "pv-b")
    assert storage.contradiction() == ""


@pytest.mark.parametrize("published", [True, False])
def test_no_volume_is_made_where_its_driver_publishes_no_capacity(published: bool) -> None:
    scene = Scene(hosts(1))
    made: dict[str, Any] = {"storage_class": "csi"}
    driver = CsiDriver(uid="d", name="c", resource_version=1, storage_capacity=published)
    scene.put(make_class("csi", provisioner="c"), driver, make_claim("data", **made))
    scene.put(make_group("g", 1), bound_by_another_scheduler("n0"))
    choice = scene.state.node_capacity.storage.find(DATA)
    assert choice == (None if published else Choice("n0", "pvc-data"))


def recalled(scene: Scene, node: str, volume: str) -> GangDecision:
    """A decision in the log that gives `data` this volume for this node."""
    if not scene.decisions:
        other = Scene(hosts(1))
        other.put(make_group("g", 1), *members("g", [()]))
        scene.decisions.append((1, other.settle()[0]))
    choice = VolumeChoice(
        pod_uid="g-0",
        namespace="team",
        claim="data",
        claim_uid="pvc-data",
        node=node,
        volume=volume,
        volume_uid=f"pv-{volume}",
    )
    decision = msgspec.structs.replace(scene.decisions[0][1], volumes=(choice,))
    claim_choices.recall(scene.state.node_capacity, decision)
    return decision


def test_the_volume_of_a_newer_decision_outlasts_the_end_of_an_older_one() -> None:
    scene, storage = with_volumes(("a", "n0"), ("b", "n0"))
    older = recalled(scene, "n0", "a")
    recalled(scene, "n0", "b")
    claim_choices.forget(scene.state.node_capacity, older)
    scene.put(make_group("g", 1), bound_by_another_scheduler("n0"))
    assert storage.find(DATA) == Choice("n0", "pvc-data", "b", "pv-b")
    assert storage.contradiction() == ""


def test_an_older_decisions_pod_gets_no_volume_that_a_newer_decision_replaces() -> None:
    scene, storage = with_volumes(("a", "n0"), ("b", "n1"))
    older = recalled(scene, "n0", "a")
    recalled(scene, "n1", "b")
    scene.put(make_group("g", 1), bound_by_another_scheduler("n0"))
    claim_choices.forget(scene.state.node_capacity, older)
    assert storage.find(DATA) is None
    pod = msgspec.structs.replace(bound_by_another_scheduler("n1"), uid="g-1", name="g-1")
    scene.put(make_group("g", 2), pod)
    assert storage.find(DATA) == Choice("n1", "pvc-data", "b", "pv-b")
    assert storage.contradiction() == ""


def test_a_volume_of_the_log_is_taken_up_on_each_node_that_can_use_it() -> None:
    scene, storage = with_volumes(("a", ""))
    scene.put(make_volume("smaller", gib=6))
    recalled(scene, "n0", "a")
    scene.put(make_group("g", 1), bound_by_another_scheduler("n1"))
    assert storage.find(DATA) == Choice("n0", "pvc-data", "a", "pv-a")
    assert storage.contradiction() == ""


def test_a_volume_of_the_log_is_taken_up_while_another_claim_of_the_pod_is_refused() -> None:
    """A binder may bind what the decision has chosen before that claim is deleted."""
    scene, storage = with_volumes(("a", "n0"))
    scene.put(make_claim("other", deleting=True))
    decision = recalled(scene, "n0", "a")
    (pod,) = members("g", [("data", "other")])
    scene.put(make_group("g", 1), msgspec.structs.replace(pod, node="n0", phase="Running"))
    claim_choices.forget(scene.state.node_capacity, decision)
    assert storage.find(DATA) == Choice("n0", "pvc-data", "a", "pv-a")


def test_a_claim_gets_the_volume_that_there_is_if_another_of_its_pod_gets_none() -> None:
    scene, storage = with_volumes(("a", "n0"))
    scene.put(make_claim("huge", gib=50))
    (pod,) = members("g", [("data", "huge")])
    scene.put(make_group("g", 1), msgspec.structs.replace(pod, node="n0", phase="Running"))
    assert storage.find(DATA) == Choice("n0", "pvc-data", "a", "pv-a")
    assert storage.find(("team", "huge")) is None
