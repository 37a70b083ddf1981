"""The demands for devices that were computed, by shape."""

from typing import Final, TypeAlias

from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.devices.demand import (
    ClaimNeed,
    Content,
    DeviceDemand,
    demand_of,
)
from services.gang_planner.core.state.devices.extended import ClassesOfResources
from services.gang_planner.core.state.devices.selection import Selection
from services.gang_planner.core.state.devices.selector_limits import SelectorLimits
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.devices import ResourceClaim

Claims: TypeAlias = list[ResourceClaim | Key | None]
"""The claims of a shape, those for the extended resources of its pod, and the keys of those that
wait for others of their namespace.
"""

#: Number of cached demands, and of different needs of claims.
_DEMANDS_MAX: Final = 65_536
_NEEDS_MAX: Final = 65_536


class Demands:
    """Demands by shape. Claims with equal contents have the same object as need while `version`
    stays the same.
    """

    def __init__(
        self, tables: ReferenceObjects, classes: ClassesOfResources, selection: Selection
    ) -> None:
        self._tables = tables
        self._classes = classes
        self._selection = selection
        self._limits = SelectorLimits(tables)
        self._read = (
            tables.resource_slices,
            tables.device_taint_rules,
            tables.device_classes,
            tables.namespaces,
        )
        #: Number of changes of these tables that the demands agree with.
        self.version = 0
        #: By encoded shape, with what its claims were.
        self._demands: dict[bytes, tuple[Claims, DeviceDemand]] = {}
        self._needs: dict[Content, ClaimNeed] = {}

    def of(self, shape: ShapeEntry) -> DeviceDemand:
        # Written out, because it is called several times for every pod with claims.
        slices, rules, classes, namespaces = self._read
        changes = slices.changes + rules.changes + classes.changes + namespaces.changes
        if self.version != changes:
            self.version = changes
            self._demands.clear()
            self._needs.clear()
        elif len(self._demands) >= _DEMANDS_MAX:
            self._demands.clear()
        claims = self.claims(shape)
        known = self._demands.get(shape.encoded)
        if known is not None and known[0] == claims:
            return known[1]
        if len(self._needs) >= _NEEDS_MAX:
            self._needs.clear()
        found = demand_of(
            shape.shape,
            shape.device_keys,
            self._tables,
            self._classes,
            self._selection,
            self._needs,
            self._limits.waiting(),
        )
        self._demands[shape.encoded] = claims, found
        return found

    def claims(self, shape: ShapeEntry) -> Claims:
        """What the shape's claims are now; None: there is no such claim."""
        claims = self._tables.resource_claims
        named: Claims = list(map(claims.by_name.get, shape.device_keys))
        for pod_uid in shape.device_pods:
            named += claims.of_pod(shape.shape.namespace, pod_uid)
        if waiting := self._limits.waiting():
            named += [key for key in shape.device_keys if key in waiting]
        return named
