"""Which devices a request may get: by driver, and by CEL selectors.

A selector is compiled once and evaluated once for all devices that agree in everything that it
reads (`shared.cel.device`). A device on which a selector fails does not match. kube-scheduler
refuses the pod for such a failure; here the verdict names it if the remaining devices are too few.
"""

from collections.abc import Container
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from shared.model.devices import (
    DeviceDetails,
)

if TYPE_CHECKING:
    from shared.cel.device import Profile, Selector

Device: TypeAlias = tuple[str, str, str]
"""Driver, pool and name."""

#: Number of cached selectors.
_SELECTORS_MAX: Final = 1_024
#: Characters of a selector that messages show.
_SHOWN_CHARACTERS: Final = 120
#: Selectors that messages show.
_SHOWN_SELECTORS: Final = 3


class DeviceRequirement(NamedTuple):
    """The devices that a request may get."""

    #: Their driver; None: of any that the selectors allow.
    driver: str | None
    #: CEL expressions of the class, then of the request; all must match.
    selectors: tuple[str, ...] = ()


class SelectorFailure(NamedTuple):
    """The first selector of a requirement that failed on a device."""

    selector: str
    cause: str


class Selection:
    """Compiled selectors and the profiles of devices, cached."""

    def __init__(self) -> None:
        #: Compiled, or why it is not supported.
        self._selectors: dict[str, Selector | str] = {}
        #: With the details that the profile is of.
        self._profiles: dict[Device, tuple[DeviceDetails, Profile]] = {}

    def forget_all_but(self, devices: Container[Device]) -> None:
        """Drop the profiles of all other devices."""
        self._profiles = {
            device: found for device, found in self._profiles.items() if device in devices
        }

    def objection(self, requirement: DeviceRequirement) -> str:
        """Why a selector of the requirement is not supported, with the selector; "": all are."""
        for expression in requirement.selectors:
            found = self._selector(expression)
            if isinstance(found, str):
                return f"selector {quoted(expression)}: {found}"
        return ""

    def matches(
        self, requirement: DeviceRequirement, device: Device, details: DeviceDetails
    ) -> bool | SelectorFailure:
        """Whether a device may serve the requirement. Selectors apply in order up to the first
        that does not match. One that is not supported matches nothing.
        """
        if requirement.driver not in {None, device[0]}:
            return False
        if not requirement.selectors:
            return True
        profile = self._profile(device, details)
        for expression in requirement.selectors:
            selector = self._selector(expression)
            if isinstance(selector, str):
                return False
            outcome = selector.outcome(profile)
            if outcome.failure:
                return SelectorFailure(expression, outcome.failure)
            if not outcome.matches:
                return False
        return True

    def _selector(self, expression: str) -> "Selector | str":
        """The compiled selector, or the reason why it is not supported."""
        # Imported with the first selector: most clusters have none, and the parser takes 20 MB.
        from shared.cel.device import Selector
        from shared.cel.expressions import UnsupportedExpressionError

        found = self._selectors.get(expression)
        if found is None:
            if len(self._selectors) >= _SELECTORS_MAX:
                self._selectors.clear()
            try:
                found = Selector(expression)
            except UnsupportedExpressionError as error:
                found = str(error)
            self._selectors[expression] = found
        return found

    def _profile(self, device: Device, details: DeviceDetails) -> "Profile":
        from shared.cel.device import Profile

        known = self._profiles.get(device)
        if known is not None and known[0] is details:
            return known[1]
        found = Profile(device[0], details)
        self._profiles[device] = details, found
        return found


def quoted(expression: str) -> str:
    """A selector as messages show it: on one line, long ones cut."""
    line = " ".join(expression.split())
    return f"`{line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + '…'}`"


def described(requirement: DeviceRequirement) -> str:
    """A requirement as messages show it."""
    driver = [] if requirement.driver is None else [f"`device.driver == '{requirement.driver}'`"]
    shown = [*driver, *map(quoted, requirement.selectors)]
    more = ["…"] if len(shown) > _SHOWN_SELECTORS else []
    return " and ".join([*shown[:_SHOWN_SELECTORS], *more]) or "any device"
