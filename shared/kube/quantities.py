"""Kubernetes quantities ("100m", "1.5Gi", "2e3") to integers and back, exactly.

The grammar and the rounding are those of k8s.io/apimachinery: a decimal number, then a decimal
suffix (n u m k M G T P E), a binary one (Ki … Ei) or an exponent; what is finer than the wanted
scale is rounded up, away from nothing. Cpu is counted in milli-CPU, everything else in its base
unit. Where Kubernetes caps or wraps a number beyond 63 bits, or reads a text without digits as 0,
we refuse it.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from shared.kube.objects import Quantity

INT64_MAX: Final = 2**63 - 1
#: Resources of every node, in parts of any size. Their limits may exceed requests, and quotas count
#: their limits. All others are whole devices, but for huge pages.
DIVISIBLE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})

#: The same resource under the keys of a ResourceQuota.
_CPU: Final = frozenset({"cpu", "requests.cpu", "limits.cpu"})
_MEMORY: Final = frozenset({"memory", "requests.memory", "limits.memory"})
_HUGE_PAGES: Final = ("hugepages-", "requests.hugepages-", "limits.hugepages-")
#: Longer texts are refused unread. Kubernetes sets no limit; no user writes a quantity of this
#: length.
_TEXT_CHARACTERS_MAX: Final = 128
#: Beyond these powers of ten a number of that many digits is surely above 63 bits, or surely below
#: one milli.
_EXPONENT_MAX: Final = 2 * _TEXT_CHARACTERS_MAX

_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]*))?|\.(?P<bare>[0-9]+))"
    r"(?:(?P<binary>[KMGTPE]i)|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class QuantityError(ValueError):
    """A text is no quantity, or not one that can be requested; the message names the text and the
    rule.
    """


def cpu_milli(text: Quantity) -> int:
    """Milli-CPU of a cpu quantity, rounded up. Raises QuantityError."""
    return _scaled(str(text), 3)


def amount(resource: str, text: Quantity) -> int:
    """A quantity of a resource in our unit: cpu in milli-CPU, everything else in whole base units,
    rounded up.

    Raises:
        QuantityError: No quantity, negative, or above 2**63-1 of our unit.
    """
    return _scaled(str(text), 3 if resource in _CPU else 0)


@lru_cache(maxsize=1_024)
def exact(text: str) -> Fraction:
    """A quantity of any sign, not rounded. Raises QuantityError: no quantity."""
    matched = _parse(text)
    whole, part = matched["whole"] or "", matched["part"] or matched["bare"] or ""
    tens = _exponent(matched["exponent"]) + _DECIMAL.get(matched["decimal"] or "", 0) - len(part)
    value = Fraction(int(whole + part)) * Fraction(10) ** tens
    value *= 1 << _BINARY.get(matched["binary"] or "", 0)
    return -value if matched["sign"] == "-" else value


def format_quantity(resource: str, amount: int) -> str:
    """The shortest usual spelling of an amount in our unit: `amount(resource,
    format_quantity(resource, n)) == n`.

    Bytes (memory, storage, hugepages) get the largest binary suffix that divides them, cpu "m"
    unless it is whole.
    """
    if resource in _CPU:
        whole, milli = divmod(amount, 1000)
        return f"{amount}m" if milli else str(whole)
    if amount and _in_bytes(resource):
        for suffix, power in reversed(_BINARY.items()):
            if amount % (1 << power) == 0:
                return f"{amount >> power}{suffix}"
    return str(amount)


def _in_bytes(resource: str) -> bool:
    return resource in _MEMORY or resource.endswith("storage") or resource.startswith(_HUGE_PAGES)


# All pods repeat the same few texts. Errors are not cached, so that malformed texts cannot displace
# valid ones.
@lru_cache(maxsize=8192)
def _scaled(text: str, power: int) -> int:
    """The quantity times 10**power, rounded up to an integer."""
    matched = _parse(text)
    whole, part = matched["whole"] or "", matched["part"] or matched["bare"] or ""
    digits = int(whole + part)
    if digits == 0:
        return 0
    if matched["sign"] == "-":
        raise QuantityError(f"{text!r} is negative: an amount must be 0 or more")
    tens = (
        power
        - len(part)
        + _DECIMAL.get(matched["decimal"] or "", 0)
        + _exponent(matched["exponent"])
    )
    if tens > _EXPONENT_MAX:
        raise QuantityError(f"{text!r} is too large: an amount must fit in 63 bits")
    digits <<= _BINARY.get(matched["binary"] or "", 0)
    if tens >= 0:
        value = digits * int(10**tens)
    else:
        value = -(-digits // int(10 ** min(-tens, _EXPONENT_MAX)))
    if value > INT64_MAX:
        raise QuantityError(f"{text!r} is too large: an amount must fit in 63 bits")
    return value


def _parse(text: str) -> re.Match[str]:
    matched = _GRAMMAR.fullmatch(text) if len(text) <= _TEXT_CHARACTERS_MAX else None
    if matched is None:
        raise QuantityError(
            f"{text[:_TEXT_CHARACTERS_MAX]!r} is no quantity: it must be a number with an optional "
            "suffix (n u m k M G T P E Ki Mi Gi Ti Pi Ei) or exponent"
        )
    return matched


def _exponent(text: str | None) -> int:
    """The exponent, bounded: beyond the bounds every number is too large or rounds up to 1."""
    return max(-2 * _EXPONENT_MAX, min(2 * _EXPONENT_MAX, int(text))) if text else 0
