"""Constraints between the devices of a claim: an attribute that all have in common, or in which
all differ.
"""

from typing import Final, TypeAlias

from services.gang_planner.core.state.devices.device_table import DeviceEntry
from shared.model.devices import DeviceConstraint

Values: TypeAlias = frozenset[tuple[type, bool, bool | int | str]]
"""The values of an attribute, with their types; empty: the device does not have it."""

_NONE: Final[Values] = frozenset()


def values_of(entry: DeviceEntry, attribute: str) -> Values:
    """The values of a device's attribute ("domain/name")."""
    for one in entry.details.attributes:
        if one.name == attribute:
            listed = one.value if isinstance(one.value, tuple) else (one.value,)
            return frozenset((type(value), one.version, value) for value in listed)
    return _NONE


class Constraint:
    """A constraint of one claim, and the devices picked so far."""

    def __init__(self, of: DeviceConstraint) -> None:
        self.attribute = of.attribute
        self._of = of
        #: After each device: the values in common, or the values taken.
        self._states: list[Values] = []

    def admits(self, request: str, values: Values) -> bool:
        """Whether a device with these values may be added for the request."""
        if not self._applies(request):
            return True
        if not self._states:
            return bool(values)
        if self._of.distinct:
            return bool(values) and values.isdisjoint(self._states[-1])
        return not values.isdisjoint(self._states[-1])

    def add(self, request: str, values: Values) -> None:
        """Add an admitted device."""
        if not self._applies(request):
            return
        if self._states:
            before = self._states[-1]
            values = before | values if self._of.distinct else before & values
        self._states.append(values)

    def remove(self, request: str) -> None:
        """Remove the newest device, which was added for the request."""
        if self._applies(request):
            self._states.pop()

    def _applies(self, request: str) -> bool:
        names = self._of.requests
        return not names or request in names or request.partition("/")[0] in names
