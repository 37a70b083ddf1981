"""The variable `device` of selectors: a device's driver, attributes and capacities, and which of
them an evaluation read.

As in kube-scheduler, a domain without attributes is an empty map, so that
`has(device.attributes["other"].x)` is false, and reading `.x` is an error.
"""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Final, NamedTuple, TypeAlias

from typing_extensions import override

from shared.cel.expressions import compile_expression
from shared.cel.macros import Node, Scope
from shared.cel.values import (
    Budget,
    CelError,
    CostExceededError,
    Quantity,
    Semver,
    Value,
    type_name,
)
from shared.model.devices import (
    DeviceAttribute,
    DeviceDetails,
)

#: Steps of one evaluation; NVIDIA's selectors take about twenty. Kubernetes' limit (1,000,000 units
#: of its own) would be seconds.
STEPS_MAX: Final = 20_000
#: Steps that all evaluations of a selector may take: per device, and to begin with.
STEPS_PER_DEVICE_MAX: Final = 200
STEPS_AT_FIRST_MAX: Final = 100_000
#: The same for a user's selector, per character: all selectors of a claim together take no more
#: than one of the longest. An expression without macros takes a step for every four characters.
USERS_STEPS_AT_FIRST: Final = 16
USERS_STEPS_PER_DEVICE: Final = 0.5
#: Unused steps that are kept: a second of evaluation.
_STEPS_LEFT_MAX: Final = 2_000_000
#: Number of results that a selector remembers.
_RESULTS_MAX: Final = 65_536

_Section: TypeAlias = Mapping[str, Mapping[str, Value]]
_Path: TypeAlias = tuple[str, str | None, str | None]
"""Section, domain and name that an evaluation read; None: all of them."""


class Outcome(NamedTuple):
    """Whether a selector matches a device; with a failure, it does not."""

    matches: bool
    #: Why the selector has no result for the device; "": it has one.
    failure: str = ""


class Profile:
    """What selectors read of a device."""

    def __init__(self, driver: str, details: DeviceDetails) -> None:
        self.driver = driver
        self.shareable = details.shareable
        #: Why selectors cannot read the device; "": they can.
        self.failure = ""
        self.sections: dict[str, dict[str, dict[str, Value]]] = {"attributes": {}, "capacity": {}}
        try:
            for attribute in details.attributes:
                self._put("attributes", attribute.name, _value(attribute))
            for name, text in details.capacity:
                self._put("capacity", name, Quantity.parse(text))
        except CelError as error:
            self.failure = str(error)

    def _put(self, section: str, name: str, value: Value) -> None:
        domain, _, identifier = name.partition("/")
        self.sections[section].setdefault(domain, {})[identifier] = value

    def at(self, path: _Path) -> Value:
        """What is at a path, in a form that is equal only for equal values of one type."""
        section, domain, name = path
        domains = self.sections[section]
        if domain is None:
            return tuple(
                (domain_name, _contents(names)) for domain_name, names in sorted(domains.items())
            )
        names = domains.get(domain, {})
        if name is None:
            return _contents(names)
        return _distinct(names[name]) if name in names else None


class Selector:
    """A compiled selector. A result is remembered for all devices that agree in everything that any
    evaluation has read of a device.
    """

    def __init__(self, expression: str, *, of_user: bool = False) -> None:
        """Raises UnsupportedExpressionError."""
        length = len(expression)
        at_first, per_device = STEPS_AT_FIRST_MAX, STEPS_PER_DEVICE_MAX
        if of_user:
            at_first = min(at_first, USERS_STEPS_AT_FIRST * length)
            per_device = min(per_device, ceil(USERS_STEPS_PER_DEVICE * length))
        self._node: Node = compile_expression(expression, frozenset({"device"}))
        self._paths: list[_Path] = []
        self._results: dict[tuple[Value, ...], Outcome] = {}
        self._steps_left, self._steps_per_device = at_first, per_device
        self.evaluations = 0
        self.steps = 0

    def outcome(self, profile: Profile) -> Outcome:
        """Whether the selector matches a device of this profile."""
        if profile.failure:
            return Outcome(False, profile.failure)
        self._steps_left = min(self._steps_left + self._steps_per_device, _STEPS_LEFT_MAX)
        key = self._key(profile)
        outcome = self._results.get(key)
        if outcome is None:
            reads: dict[_Path, None] = {}
            outcome = self._evaluate(profile, reads)
            fresh = [path for path in reads if path not in self._paths]
            if fresh or len(self._results) >= _RESULTS_MAX:
                self._paths += fresh
                self._results.clear()
                key = self._key(profile)
            self._results[key] = outcome
        return outcome

    def _key(self, profile: Profile) -> tuple[Value, ...]:
        return profile.driver, profile.shareable, *[profile.at(path) for path in self._paths]

    def _evaluate(self, profile: Profile, reads: dict[_Path, None]) -> Outcome:
        self.evaluations += 1
        budget = Budget(min(STEPS_MAX, self._steps_left))
        device: dict[str, Value] = {
            "driver": profile.driver,
            "allowMultipleAllocations": profile.shareable,
            **{name: _Domains(name, domains, reads) for name, domains in profile.sections.items()},
        }
        before = budget.steps
        try:
            result = self._node(Scope({"device": device}, budget))
        except CelError as error:
            return Outcome(False, str(error))
        except CostExceededError:
            return Outcome(False, f"it takes more than {before} steps")
        except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
            return Outcome(False, f"it cannot be evaluated: {type(error).__name__}")
        finally:
            taken = before - max(budget.steps, 0)
            self._steps_left -= taken
            self.steps += taken
        if not isinstance(result, bool):
            return Outcome(False, f"the result is of type {type_name(result)}, not bool")
        return Outcome(result)


def _value(attribute: DeviceAttribute) -> Value:
    value = attribute.value
    if not attribute.version:
        return value
    if isinstance(value, tuple):
        return tuple(Semver.parse(str(version)) for version in value)
    return Semver.parse(str(value))


def _contents(names: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    return tuple((name, _distinct(value)) for name, value in sorted(names.items()))


def _distinct(value: Value) -> Value:
    """With the type: Python counts True and 1 as equal."""
    if isinstance(value, tuple):
        return "list", tuple(_distinct(element) for element in value)
    return type_name(value), value


class _Domains(Mapping[str, Value]):
    """`device.attributes` or `device.capacity`: a domain's names, none for an unknown domain."""

    def __init__(self, section: str, domains: _Section, reads: dict[_Path, None]) -> None:
        self._section = section
        self._domains = domains
        self._reads = reads

    @override
    def __getitem__(self, domain: str) -> Value:
        return _Names(self._section, domain, self._domains.get(domain, {}), self._reads)

    @override
    def __contains__(self, domain: object) -> bool:
        self._reads[self._section, None, None] = None
        return domain in self._domains

    @override
    def __iter__(self) -> Iterator[str]:
        self._reads[self._section, None, None] = None
        return iter(sorted(self._domains))

    @override
    def __len__(self) -> int:
        self._reads[self._section, None, None] = None
        return len(self._domains)


class _Names(Mapping[str, Value]):
    """The attributes or capacities of one domain."""

    def __init__(
        self, section: str, domain: str, names: Mapping[str, Value], reads: dict[_Path, None]
    ) -> None:
        self._section = section
        self._domain = domain
        self._names = names
        self._reads = reads

    @override
    def __getitem__(self, name: str) -> Value:
        self._reads[self._section, self._domain, name] = None
        return self._names[name]

    @override
    def __iter__(self) -> Iterator[str]:
        self._reads[self._section, self._domain, None] = None
        return iter(sorted(self._names))

    @override
    def __len__(self) -> int:
        self._reads[self._section, self._domain, None] = None
        return len(self._names)
