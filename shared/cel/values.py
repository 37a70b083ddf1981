"""Values of CEL: Python's own bool, int, float, str, bytes, None, tuple (list) and Mapping, and
the types here.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import total_ordering
from typing import Final, Self, TypeAlias

from typing_extensions import override

from shared.kube.quantities import QuantityError, exact

Value: TypeAlias = object

INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1
#: Characters or elements that cost one step.
COST_UNIT: Final = 10
_DIGITS: Final = frozenset("0123456789")
_SEMVER: Final = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


class CelError(Exception):
    """An evaluation failed; the message is a phrase such as "no such key: memory"."""


class CostExceededError(Exception):
    """An evaluation needs more steps than it may take; no operator absorbs this."""


class Budget:
    """The steps that one evaluation may still take."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def spend(self, steps: int) -> None:
        """Raises CostExceededError: none are left."""
        self.steps -= steps
        if self.steps < 0:
            raise CostExceededError


def charged(budget: Budget, size: int) -> None:
    """Charge the making of a text or list of so many characters or elements."""
    budget.spend(size // COST_UNIT)


ABSENT: Final = object()
"""Stands for no value."""


class OptionalValue:
    """A value, or none."""

    __slots__ = ("content",)

    def __init__(self, content: Value = ABSENT) -> None:
        self.content = content

    @property
    def is_present(self) -> bool:
        """Whether it has a value."""
        return self.content is not ABSENT


class Uint(int):
    """An unsigned integer; every other int is signed."""


class CelType(str):
    """A type as a value, by its name."""

    __slots__ = ()


@total_ordering
class Quantity:
    """A Kubernetes quantity, exact."""

    __slots__ = ("amount",)

    def __init__(self, amount: Fraction) -> None:
        self.amount = amount

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises CelError: no quantity."""
        try:
            return cls(exact(text))
        except QuantityError as error:
            raise CelError(str(error)) from error

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.amount == other.amount

    def __lt__(self, other: "Quantity") -> bool:
        return self.amount < other.amount

    @override
    def __hash__(self) -> int:
        return hash(self.amount)


@total_ordering
class Semver:
    """A semantic version 2.0.0; build metadata does not count in comparisons."""

    __slots__ = ("numbers", "release")

    def __init__(self, numbers: tuple[int, int, int], release: tuple[str, ...]) -> None:
        self.numbers = numbers
        #: Identifiers of the pre-release; (): a release.
        self.release = release

    @classmethod
    def parse(cls, text: str, *, normalize: bool = False) -> Self:
        """Read a version. `normalize`: a leading "v", leading zeros and missing parts are allowed.

        Raises:
            CelError: No semantic version.
        """
        match = _SEMVER.fullmatch(_normalized(text) if normalize else text)
        release = tuple((match[4] or "").split(".")) if match and match[4] else ()
        numeric = [identifier for identifier in release if identifier.isdecimal()]
        if match is None or any(
            len(identifier) > 1 and identifier[0] == "0" for identifier in numeric
        ):
            raise CelError(f'"{text}" is no semantic version')
        return cls((int(match[1]), int(match[2]), int(match[3])), release)

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._key() == other._key()

    def __lt__(self, other: "Semver") -> bool:
        return self._key() < other._key()

    @override
    def __hash__(self) -> int:
        return hash((self.numbers, self.release))

    def _key(self) -> tuple[tuple[int, int, int], bool, list[tuple[bool, int, str]]]:
        """A release is after its pre-releases; numbers are before names."""
        names = [
            (False, int(identifier), "") if identifier.isdecimal() else (True, 0, identifier)
            for identifier in self.release
        ]
        return self.numbers, not self.release, names


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            shorter = part.lstrip("0")
            parts[index] = shorter if shorter[:1] in _DIGITS else f"0{shorter}"
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise CelError("a short version cannot have a pre-release or build metadata")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def type_name(value: Value) -> str:
    """The CEL name of a value's type."""
    for kind, name in _NAMES:
        if isinstance(value, kind):
            return name
    return type(value).__name__


_NAMES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "bool"),
    (Uint, "uint"),
    (int, "int"),
    (float, "double"),
    (CelType, "type"),
    (str, "string"),
    (bytes, "bytes"),
    (tuple, "list"),
    (Mapping, "map"),
    (type(None), "null_type"),
    (Quantity, "kubernetes.Quantity"),
    (Semver, "kubernetes.Semver"),
    (OptionalValue, "optional_type"),
)


def is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(budget: Budget, left: Value, right: Value) -> bool:
    """CEL's equality: numbers compare by value, values of different types are unequal. Each element
    of a list or map is a step: a list may have itself in many places.
    """
    if is_number(left) and is_number(right):
        return left == right
    if isinstance(left, tuple) and isinstance(right, tuple):
        budget.spend(len(left))
        return len(left) == len(right) and all(
            equal(budget, element, other) for element, other in zip(left, right, strict=True)
        )
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        budget.spend(len(left))
        return len(left) == len(right) and all(
            key in right and equal(budget, content, right[key]) for key, content in left.items()
        )
    if isinstance(left, OptionalValue) and isinstance(right, OptionalValue):
        return equal(budget, left.content, right.content)
    return type_name(left) == type_name(right) and left == right
