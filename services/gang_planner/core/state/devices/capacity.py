"""How much of a device's capacities a request consumes.

A device that allows several allocations lends parts of its capacities. Each capacity may have a
policy that rounds requests up, or refuses them. Any other device is consumed whole, and a request
for capacity only compares.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from shared.kube.quantities import exact
from shared.model.devices import CapacityPolicy, DeviceDetails


class DeviceCapacityRule(NamedTuple):
    """One capacity of a device, and how much of it a request consumes."""

    #: As the driver writes it; allocations name it so.
    name: str
    value: Fraction
    default: Fraction | None = None
    values: tuple[Fraction, ...] = ()
    minimum: Fraction | None = None
    maximum: Fraction | None = None
    step: Fraction | None = None


def rules_of(driver: str, details: DeviceDetails) -> tuple[DeviceCapacityRule, ...]:
    """The rules of a device's capacities. Raises QuantityError."""
    if details.shareable:
        return tuple(map(_rule, details.policies))
    return tuple(
        DeviceCapacityRule(local_name(driver, name), exact(text)) for name, text in details.capacity
    )


def local_name(driver: str, name: str) -> str:
    """The name of a capacity without its domain, if that is the driver."""
    return name.removeprefix(f"{driver}/")


def consumption(
    driver: str, rules: Iterable[DeviceCapacityRule], requested: Mapping[str, Fraction]
) -> dict[str, Fraction] | None:
    """What a request consumes of each capacity, by its name; None: the device has no such capacity,
    has too little even if unused, or its policy allows no such amount.
    """
    wanted = {local_name(driver, name): amount for name, amount in requested.items()}
    consumed: dict[str, Fraction] = {}
    for rule in rules:
        asked = wanted.pop(local_name(driver, rule.name), None)
        amount = _consumed(rule, asked)
        if amount > rule.value or not _allowed(rule, amount):
            return None
        consumed[rule.name] = amount
    return None if wanted else consumed


def quantity_text(amount: Fraction) -> str:
    """The amount as a Kubernetes quantity, rounded up to nanos."""
    if amount.denominator == 1:
        return str(amount.numerator)
    return f"{ceil(amount * 10**9)}n"


def _rule(policy: CapacityPolicy) -> DeviceCapacityRule:
    return DeviceCapacityRule(
        policy.name,
        exact(policy.value),
        default=_optional(policy.default),
        values=tuple(map(exact, policy.values)),
        minimum=_optional(policy.minimum),
        maximum=_optional(policy.maximum),
        step=_optional(policy.step),
    )


def _optional(text: str) -> Fraction | None:
    return exact(text) if text else None


def _consumed(rule: DeviceCapacityRule, requested: Fraction | None) -> Fraction:
    if requested is None:
        return rule.value if rule.default is None else rule.default
    if rule.minimum is not None:
        if requested <= rule.minimum:
            return rule.minimum
        if not rule.step:
            return requested
        return rule.minimum + rule.step * ceil((requested - rule.minimum) / rule.step)
    return next((value for value in rule.values if requested <= value), requested)


def _allowed(rule: DeviceCapacityRule, amount: Fraction) -> bool:
    if amount == rule.default:
        return True
    if rule.minimum is None and rule.maximum is None:
        return not rule.values or amount in rule.values
    if rule.maximum is not None and amount > rule.maximum:
        return False
    return not rule.step or (amount - (rule.minimum or 0)) % rule.step == 0
