"""Which devices a request may get: by driver, and by CEL selectors.

A selector is compiled once and evaluated once for all devices that agree in everything that it
reads (`shared.cel.device`). Users write those of claims, which have narrower bounds than those of
classes. A device on which a selector fails does not match. kube-scheduler refuses the pod for such
a failure; here the verdict names it if the remaining devices are too few.
"""

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeAlias, TypeVar

from shared.model.devices import DeviceDetails, DeviceRequest, ResourceClaim

if TYPE_CHECKING:
    from shared.cel.device import Profile, Selector

Key = TypeVar("Key")
Result = TypeVar("Result")

#: Results of all namespaces together, and of one.
RESULTS_MAX: Final = 1_024
NAMESPACE_RESULTS_MAX: Final = 256

Device: TypeAlias = tuple[str, str, str]
"""Driver, pool and name."""

#: Characters of all different selectors of one claim; one of them takes some 40 us to compile, and
#: the longest in the examples of drivers have about 200. Kubernetes allows 10 KiB in each of 1,024
#: selectors.
CLAIM_CHARACTERS_MAX: Final = 2_048
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
    #: Number of those of the request, and the claim's namespace; "": the request has none.
    own: int = 0
    namespace: str = ""

    def charged(self) -> list[tuple[str, str]]:
        """Each selector after the namespace of the user who wrote it; "": an administrator."""
        first = len(self.selectors) - self.own
        return [
            (self.namespace if at >= first else "", selector)
            for at, selector in enumerate(self.selectors)
        ]


class SelectorFailure(NamedTuple):
    """The first selector of a requirement that failed on a device."""

    selector: str
    cause: str


class NamespaceCache(Generic[Key, Result]):
    """Results by namespace ("": of administrators) and key. Each namespace has a bounded part: its
    users cannot push out what others use.

    A namespace with NAMESPACE_RESULTS_MAX loses the one that it has not used for longest. If all
    namespaces together have RESULTS_MAX, the one with the most loses one.
    """

    def __init__(self) -> None:
        #: The least recently used first. None of a namespace is empty.
        self._results: dict[str, dict[Key, Result]] = {}

    def clear(self) -> None:
        self._results.clear()

    def find(self, namespace: str, key: Key, make: Callable[[], Result]) -> Result:
        """The result for the key, made if it is not cached."""
        cached = self._results.get(namespace)
        if cached is not None and key in cached:
            result = cached[key] = cached.pop(key)
            return result
        # This may use the cache, too.
        made = make()
        if len(self._results.get(namespace, ())) >= NAMESPACE_RESULTS_MAX:
            self._drop_oldest(namespace)
        elif sum(map(len, self._results.values())) >= RESULTS_MAX:
            self._drop_oldest(max(self._results, key=lambda name: len(self._results[name])))
        self._results.setdefault(namespace, {})[key] = made
        return made

    def _drop_oldest(self, namespace: str) -> None:
        cached = self._results[namespace]
        del cached[next(iter(cached))]
        if not cached:
            del self._results[namespace]


class Selection:
    """Compiled selectors and the profiles of devices, cached."""

    def __init__(self) -> None:
        #: Compiled, or why it is not supported.
        self._selectors: NamespaceCache[str, Selector | str] = NamespaceCache()
        #: With the details that the profile is of.
        self._profiles: dict[Device, tuple[DeviceDetails, Profile]] = {}
        #: Number of characters compiled so far.
        self.compiled = 0

    def forget_all_but(self, devices: Container[Device]) -> None:
        """Drop the profiles of all other devices."""
        self._profiles = {
            device: profile for device, profile in self._profiles.items() if device in devices
        }

    def objection(self, requirement: DeviceRequirement) -> str:
        """Why a selector of the requirement is not supported, with the selector; "": all are."""
        for namespace, expression in requirement.charged():
            compiled = self._selector(namespace, expression)
            if isinstance(compiled, str):
                return f"selector {quoted(expression)}: {compiled}"
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
        for namespace, expression in requirement.charged():
            selector = self._selector(namespace, expression)
            if isinstance(selector, str):
                return False
            outcome = selector.outcome(profile)
            if outcome.failure:
                return SelectorFailure(expression, outcome.failure)
            if not outcome.matches:
                return False
        return True

    def _selector(self, namespace: str, expression: str) -> "Selector | str":
        """The compiled selector, or the reason why it is not supported."""
        return self._selectors.find(
            namespace, expression, lambda: self._compiled(namespace, expression)
        )

    def _compiled(self, namespace: str, expression: str) -> "Selector | str":
        # Imported with the first selector: most clusters have none, and the parser takes 20 MB.
        from shared.cel.device import Selector
        from shared.cel.expressions import UnsupportedExpressionError

        self.compiled += len(expression)
        try:
            return Selector(expression, of_user=bool(namespace))
        except UnsupportedExpressionError as error:
            return str(error)

    def _profile(self, device: Device, details: DeviceDetails) -> "Profile":
        from shared.cel.device import Profile

        known = self._profiles.get(device)
        if known is not None and known[0] is details:
            return known[1]
        profile = Profile(device[0], details)
        self._profiles[device] = details, profile
        return profile


def requests_of(claim: ResourceClaim) -> list[DeviceRequest]:
    """The requests of a claim; in place of one that has alternatives these."""
    return [
        alternative
        for request in claim.requests
        for alternative in request.alternatives or (request,)
    ]


def too_long(claim: ResourceClaim) -> str:
    """Why the selectors of a claim are not read, with their field; "": they are."""
    different = {selector for request in requests_of(claim) for selector in request.selectors}
    characters = sum(map(len, different))
    if characters <= CLAIM_CHARACTERS_MAX:
        return ""
    return (
        f"spec.devices.requests: its different CEL selectors have {characters} characters together,"
        f" and Tutti evaluates at most {CLAIM_CHARACTERS_MAX}"
    )


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
