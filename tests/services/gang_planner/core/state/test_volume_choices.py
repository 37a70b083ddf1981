"""Which volumes count as chosen, and which choices of the log a pod takes up."""

from typing import Any

import msgspec
import pytest

from services.gang_planner.core.state.storage.ledger import Choice, Storage
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
    return scene, scene.planner._state.node_capacity.storage


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
    assert storage.choice(DATA) == Choice("n0", "pvc-data", "a", "pv-a")
    if claim.uid != "pvc-data":
        scene.remove(make_claim("data"))
    scene.put(claim)
    assert storage.choice(DATA) is None


def test_a_volume_that_the_log_gives_to_a_claim_is_no_other_claims() -> None:
    scene, storage = with_volumes(("a", "n0"))
    scene.put(make_group("g", 1), bound_by_another_scheduler("n0"), make_claim("logged"))
    storage.pin(("team", "logged"), Choice("n0", "pvc-logged", "a", "pv-a"))
    assert storage.choice(DATA) is None
    assert storage.contradiction() == ""


@pytest.mark.parametrize(
    "pin",
    [Choice("n0", "pvc-data", "a", "pv-a"), Choice("n1", "of-another-life", "c", "pv-c")],
    ids=["for another node", "for a claim that was created again"],
)
def test_a_choice_of_the_log_for_something_else_is_not_taken_up(pin: Choice) -> None:
    scene, storage = with_volumes(("a", "n0"), ("b", "n1"), ("c", "n1"))
    storage.pin(DATA, pin)
    scene.put(make_group("g", 1), bound_by_another_scheduler("n1"))
    assert storage.choice(DATA) == Choice("n1", "pvc-data", "b", "pv-b")
    assert storage.contradiction() == ""


@pytest.mark.parametrize("published", [True, False])
def test_no_volume_is_made_where_its_driver_publishes_no_capacity(published: bool) -> None:
    scene = Scene(hosts(1))
    made: dict[str, Any] = {"storage_class": "csi"}
    driver = CsiDriver(uid="d", name="c", resource_version=1, storage_capacity=published)
    scene.put(make_class("csi", provisioner="c"), driver, make_claim("data", **made))
    scene.put(make_group("g", 1), bound_by_another_scheduler("n0"))
    choice = scene.planner._state.node_capacity.storage.choice(DATA)
    assert choice == (None if published else Choice("n0", "pvc-data"))
