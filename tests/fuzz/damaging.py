"""Damages an input: plain values by their structure, bytes without any."""

import copy
from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec

from tests.fuzz.shaping import WORDS

#: What stands where something else should.
_ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 2**31, 2**63, 2**64 - 1, 1.5, -0.0, 1e308),
    *("", "x", {}, [], [[]], {"": ""}, [None], {"a": None}),
    *WORDS,
)
#: Levels that a value is buried under; the last is beyond what recursion allows.
_LEVELS: Final = (3, 50, 300, 3000)
_TOO_DEEP: Final = 200
#: So often something is repeated, in small inputs; `bulk` says how much more in the large ones.
_TIMES: Final = (2, 10, 100)


def damaged(value: Any, random: Random, *, bulk: int = 1) -> Any:
    """The value with up to three places changed; it may be changed itself. `bulk` multiplies how
    often something is repeated.
    """
    for change in range(random.choice((1, 1, 2, 3))):
        # What is repeated is not repeated again: three times a thousand is a thousand million.
        value = _changed_somewhere(value, random, bulk if change == 0 else 0)
    return value


def _changed_somewhere(value: Any, random: Random, bulk: int) -> Any:
    parent: Any = None
    key: Any = None
    here = value
    while isinstance(here, dict | list) and here and random.random() < 0.95:
        parent = here
        key = random.choice([*here]) if isinstance(here, dict) else random.randrange(len(here))
        here = here[key]
    if parent is None:
        return _replacement(value, random, bulk)
    action = random.random()
    if action < 0.15:
        del parent[key]
    elif action < 0.3 and isinstance(parent, dict):
        parent[random.choice(WORDS)] = parent.pop(key)
    elif action < 0.45 and isinstance(parent, list):
        parent.extend([here] * _times(random, bulk))
    else:
        parent[key] = _replacement(here, random, bulk)
    return value


def _replacement(here: Any, random: Random, bulk: int) -> Any:
    action = random.random()
    if action < 0.1:
        return buried(here, random.choice(_LEVELS), random)
    if action < 0.2:
        return [here] * _times(random, bulk)
    if action < 0.3:
        return {f"{word}{n}": here for n in range(_times(random, bulk)) for word in "ab"}
    if action < 0.45 and isinstance(here, str):
        return lengthened(here, random, bulk)
    if action < 0.6 and isinstance(here, int) and not isinstance(here, bool):
        larger = here * 1000 if abs(here) < 2**50 else here // 2
        smaller = -here if abs(here) < 2**63 else -1
        return random.choice((smaller, larger, str(here), float(here)))
    # A copy: a later change may go into it, and the next input must know nothing of that.
    return copy.deepcopy(random.choice(_ODD))


def _times(random: Random, bulk: int) -> int:
    return random.choice(_TIMES) * bulk or 2


def buried(value: Any, levels: int, random: Random) -> Any:
    """The value at the bottom of so many arrays, or objects; see `TooDeep`."""
    if levels >= _TOO_DEEP:
        return TooDeep(levels)
    as_array = random.random() < 0.5
    for _ in range(levels):
        value = [value] if as_array else {"a": value}
    return value


class TooDeep:
    """So many arrays within each other, which no encoder would write: `in_full` does."""

    def __init__(self, levels: int) -> None:
        self._levels = levels

    def json(self) -> msgspec.Raw:
        """As JSON."""
        return msgspec.Raw(b"[" * self._levels + b"]" * self._levels)

    def msgpack(self) -> msgspec.Raw:
        """As MessagePack."""
        return msgspec.Raw(b"\x91" * self._levels + b"\xc0")


def lengthened(text: str, random: Random, bulk: int) -> str:
    """The text, a part of it or a new end repeated: what backtracks takes its time."""
    unit = text[: random.randrange(4)] or random.choice(
        ("a", "1", ",", "1,", "0", " ", ".", "-", "é")
    )
    end = random.choice(("", "!", "\n", "\x00", text))
    return unit * (_times(random, bulk)) + end


def broken(body: bytes, random: Random) -> bytes:
    """The bytes with a few of them changed, gone, repeated or added."""
    made = bytearray(body)
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(made) + 1)
        _BREAKS[random.randrange(len(_BREAKS))](made, at, random)
    return bytes(made)


def _flip(made: bytearray, at: int, random: Random) -> None:
    if at < len(made):
        made[at] ^= 1 << random.randrange(8)


def _cut(made: bytearray, at: int, random: Random) -> None:
    del made[at : at + random.choice((1, 4, len(made)))]


def _insert(made: bytearray, at: int, random: Random) -> None:
    made[at:at] = random.choice(
        (
            b"\x00",
            b'"',
            b"\\",
            b"{",
            b"[",
            b"}",
            b"]",
            b"\xff\xfe",
            b"\xdf\xff\xff\xff\xff",
            b"\\ud800",
        )
    )


def _repeat(made: bytearray, at: int, random: Random) -> None:
    piece = made[at : at + random.choice((1, 8, 64))]
    made[at:at] = piece * random.choice((1, 10, 100))


_BREAKS: Final[tuple[Callable[[bytearray, int, Random], None], ...]] = (
    _flip,
    _flip,
    _cut,
    _insert,
    _repeat,
)
