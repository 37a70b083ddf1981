"""The demands of shapes for devices, cached until a table on which they depend changes."""

from typing import TYPE_CHECKING, Final

from services.gang_planner.core.state.devices.demand import (
    ClaimNeed,
    Content,
    DeviceDemand,
    demand_of,
)

if TYPE_CHECKING:
    from services.gang_planner.core.state.devices.extended import ClassesOfResources
    from services.gang_planner.core.state.devices.selection import Selection
    from services.gang_planner.core.state.pod_shapes import ShapeEntry
    from services.gang_planner.core.state.reference_objects import ReferenceObjects

#: Number of cached demands.
_DEMANDS_MAX: Final = 65_536


class Demands:
    """Demands by shape. Claims with equal contents have the same object as need while `version`
    stays the same.
    """

    def __init__(
        self, tables: "ReferenceObjects", classes: "ClassesOfResources", selection: "Selection"
    ) -> None:
        self._tables = tables
        self._classes = classes
        self._selection = selection
        self._read = (
            tables.resource_claims,
            tables.resource_slices,
            tables.device_taint_rules,
            tables.device_classes,
            tables.namespaces,
        )
        #: Number of changes of these tables that the demands agree with.
        self.version = 0
        self._demands: dict[bytes, DeviceDemand] = {}
        self._needs: dict[Content, ClaimNeed] = {}

    def of(self, shape: "ShapeEntry") -> DeviceDemand:
        # Written out, because it is called several times for every pod with claims.
        claims, slices, rules, classes, namespaces = self._read
        changes = (
            claims.changes + slices.changes + rules.changes + classes.changes + namespaces.changes
        )
        if self.version != changes:
            self.version = changes
            self._demands.clear()
            self._needs.clear()
        elif len(self._demands) >= _DEMANDS_MAX:
            self._demands.clear()
        found = self._demands.get(shape.encoded)
        if found is None:
            found = self._demands[shape.encoded] = demand_of(
                shape.shape,
                shape.device_keys,
                self._tables,
                self._classes,
                self._selection,
                self._needs,
            )
        return found
