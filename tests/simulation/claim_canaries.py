"""Planted bugs in the handling of claims; `canaries` plants them with the rest.

Where chance hardly ever brings together what shows a bug, its canary has a world that is tighter
than that of a seed: only gangs with such claims, less room, a slower provisioner.
"""

from typing import Any, Final

import msgspec
import numpy as np

from services.binder import claims
from services.binder.core import claim_preparation
from services.binder.core.machine import Machine
from services.gang_planner.core.state.claim_ledger import ClaimLedger
from services.gang_planner.core.state.devices import allocation_search
from services.gang_planner.core.state.devices.allocation_search import Constraint, DevicesOfNode
from services.gang_planner.core.state.devices.grants import DeviceGrants
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.storage import available_volumes, ledger
from services.gang_planner.core.state.storage.demand import demand_of
from services.gang_planner.core.state.storage.ledger import Storage
from shared.contracts.decisions import VolumeChoice
from shared.model.objects import Shape
from tests.simulation.claims import DEVICE_FEATURES, ClaimShape
from tests.simulation.planting import Canary, Replaced


def _claims_not_prepared() -> Replaced:
    return [(Machine, "_prepare", lambda self: self._bind())]


def _devices_chosen_twice() -> Replaced:
    return [(DeviceGrants, "units", lambda *_: [])]


def _volumes_anywhere() -> Replaced:
    def everywhere(self: Storage, _: Any) -> Any:
        return np.ones(self.nodes.size, dtype=np.bool_)

    return [(Storage, "volumes_fit", everywhere)]


def _counters_ignored() -> Replaced:
    """Counters that claims consume already count as unused."""

    def unused(self: DevicesOfNode, pool: Any) -> dict[Any, Any]:
        return dict(self._inventory.table.counters.get(pool, {}))

    return [(DevicesOfNode, "counters", unused)]


def _constraints_ignored() -> Replaced:
    return [(Constraint, "admits", lambda *_: True)]


def _device_taints_ignored() -> Replaced:
    return [(allocation_search, "blocking_taint", lambda *_: None)]


def _devices_not_given_out() -> Replaced:
    return [(claims, "device_step", lambda *_: claim_preparation.DONE)]


def _choices_forgotten() -> Replaced:
    """A planner that starts does not know which volumes and devices are given away already."""
    return [(ClaimLedger, "pin", lambda *_: None)]


def _exclusive_claim_shared() -> Replaced:
    return [(Storage, "in_use", lambda *_: False)]


def _volume_limits_ignored() -> Replaced:
    return [(Storage, "over_limits", lambda *_: None)]


def _capacity_ignored() -> Replaced:
    return [(ledger, "enough_capacity", available_volumes.may_provision)]


def _former_pods_claim_used() -> Replaced:
    """A claim made for a pod serves the next one of its name, too."""

    def trusting(shape: Shape, tables: ReferenceObjects) -> Any:
        return demand_of(msgspec.structs.replace(shape, own_claims=()), tables)

    return [(ledger, "demand_of", trusting)]


def _selected_node_taken_off() -> Replaced:
    """The fields written for a volume that may be in creation are removed like the rest."""
    undo = claim_preparation.volume_undo

    def tidy(claim: Any, volume: Any, choice: VolumeChoice) -> Any:
        notes = ((claim or {}).get("metadata") or {}).get("annotations") or {}
        if choice.volume or notes.get(claim_preparation.SELECTED_NODE) != choice.node:
            return undo(claim, volume, choice)
        return claim_preparation.Write(
            "claim",
            claim_preparation._patch(
                claim, {"annotations": {claim_preparation.SELECTED_NODE: None}}
            ),
        )

    return [(claims, "volume_undo", tidy)]


CANARIES: Final[dict[str, Canary]] = {
    "claims_not_prepared": Canary(
        _claims_not_prepared,
        4,
        ("has no volume", "of 1 devices", "of 2 devices"),
        claims=ClaimShape(),
    ),
    "devices_not_given_out": Canary(_devices_not_given_out, 4, (" devices",), claims=ClaimShape()),
    "devices_chosen_twice": Canary(
        _devices_chosen_twice,
        6,
        ("is chosen for two claims", "is allocated twice"),
        claims=ClaimShape(),
        first=103,
    ),
    "counters_ignored": Canary(
        _counters_ignored, 6, ("are allocated", ", take "), claims=DEVICE_FEATURES
    ),
    "constraints_ignored": Canary(
        _constraints_ignored, 4, ("is not honoured",), claims=DEVICE_FEATURES
    ),
    "device_taints_ignored": Canary(
        _device_taints_ignored,
        20,
        ("does not tolerate its taint",),
        claims=DEVICE_FEATURES,
        first=101,
    ),
    "volumes_anywhere": Canary(
        _volumes_anywhere, 8, ("cannot be reached",), claims=ClaimShape(), first=102
    ),
    "choices_forgotten": Canary(
        _choices_forgotten,
        80,
        ("is chosen for two claims", "is allocated twice"),
        claims=ClaimShape(share=1.0, kinds=("local", "gpus")),
        first=103,
    ),
    "exclusive_claim_shared": Canary(
        _exclusive_claim_shared,
        8,
        ("is used by two pods",),
        claims=ClaimShape(share=1.0, kinds=("exclusive",)),
    ),
    "volume_limits_ignored": Canary(
        _volume_limits_ignored,
        8,
        ("volumes of a driver",),
        claims=ClaimShape(share=1.0, kinds=("zonal",)),
    ),
    "capacity_ignored": Canary(
        _capacity_ignored,
        8,
        ("GiB are left",),
        claims=ClaimShape(share=1.0, kinds=("zonal",), zone_gib=20),
    ),
    "former_pods_claim_used": Canary(
        _former_pods_claim_used,
        8,
        ("was made for another pod",),
        claims=ClaimShape(share=1.0, kinds=("scratch",), collector_s=60.0),
        first=101,
    ),
    "selected_node_taken_off": Canary(
        _selected_node_taken_off,
        8,
        ("cannot be reached",),
        claims=ClaimShape(share=1.0, kinds=("zonal",), slow_s=25.0),
    ),
}
