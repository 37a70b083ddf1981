"""The turns of claims: forgotten with the claims, so that a planner that runs for years does not
keep one for each claim that there ever was.
"""

import pytest

from services.gang_planner.core.state import claim_turns
from tests.services.gang_planner.core.claims import (
    hosts,
    make_claim,
    make_class,
    make_device_claim,
    make_device_class,
    make_slice,
    make_volume,
)
from tests.services.gang_planner.core.scene import Scene, make_group, make_pods, make_shape


def test_turns_of_claims_that_are_gone_are_forgotten_and_claims_are_chosen_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claim_turns, "TURNS_MIN", 4)
    scene = Scene(hosts(1))
    scene.put(make_class(), make_device_class(), make_slice("n0", 1))
    capacity = scene.planner._state.node_capacity
    for number in range(12):
        name = f"g{number}"
        volume, claim = make_volume(f"v{number}", "n0"), make_claim(f"c{number}")
        device = make_device_claim(f"d{number}")
        shape = make_shape(
            {"cpu": 100},
            claims=(claim.name,),
            device_claims=(device.name,),
            namespace="team",
        )
        scene.put(volume, claim, device, make_group(name, 1), *make_pods(name, 1, shape))
        scene.settle()
        # The node's only device and volume are free again each time.
        assert [one.gang for _, one in scene.decisions][-1] == f"team/{name}"
        scene.remove(*scene.pods_of(name), claim, device, volume)
        scene.settle()
        assert len(capacity.storage._turns) <= 5
        assert len(capacity.devices._turns) <= 5
