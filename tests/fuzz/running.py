"""Feeds targets, and judges how each input ended: result, typed refusal, or a finding."""

import contextlib
import gc
import resource
import sys
import time
import tracemalloc
from random import Random
from typing import Final, NamedTuple

from typing_extensions import override

from tests.fuzz.targets import Target

#: CPU that any input may take, however small, and beyond that per byte. Pure Python looks at a byte
#: of JSON in a third of a microsecond; what is quadratic needs far more for a hundred kilobytes.
_BASE_S: Final = 0.05
_PER_BYTE_S: Final = 5e-6
#: PyYAML takes a hundred times as long.
_YAML_PER_BYTE_S: Final = 5e-4
_YAML_BYTES_MAX: Final = 800
#: The API server takes requests of up to 3 MiB; a watch line or a message is no longer either.
_BYTES_MAX: Final = 3 << 20
#: Inputs that are made until one is neither too long nor too deep to be written.
_MAKES: Final = 4
#: An input that was too slow is timed again: the machine may have been looking elsewhere.
_TRIES: Final = 3
#: Memory held at the peak, beyond what was held before: plain Python objects of a JSON text.
_BASE_BYTES: Final = 4 << 20
_PER_BYTE: Final = 100
#: Every so many inputs memory is looked at, which costs five times the time; and so many are large.
_MEMORY_EVERY: Final = 101
_BULK_EVERY: Final = 199
_BULK: Final = 20
#: The whole process may grow by so much over the first round: caches fill, nothing else.
_GROWTH_KIB: Final = 200 * 1024


class Finding(NamedTuple):
    """An input that ended badly."""

    target: str
    #: Makes the same input again: `python -m tests.fuzz --target NAME --seed N`.
    seed: int
    what: str
    input: bytes

    @override
    def __str__(self) -> str:
        shown = f"{self.input[:300]!r}{'…' if len(self.input) > 300 else ''}"
        return f"{self.target}, seed {self.seed}, {len(self.input)} bytes: {self.what}\n  {shown}"


class Tally:
    """What one target has had so far."""

    def __init__(self) -> None:
        self.inputs = 0
        self.refused = 0
        self.bytes = 0
        self.slowest_s = 0.0


def made_by(target: Target, seed: int) -> bytes:
    """The input of a seed."""
    bulk = _BULK if seed % _BULK_EVERY == 0 and not target.is_yaml else 1
    most = _YAML_BYTES_MAX if target.is_yaml else _BYTES_MAX
    for again in range(_MAKES):
        # One damage inside another may be deeper than the encoder goes; `TooDeep` is for that.
        with contextlib.suppress(RecursionError):
            made = target.make(Random(seed + again), 1 if again else bulk)
            if len(made) <= _BYTES_MAX:
                return made[:most]
    return b""


def tried(target: Target, seed: int, tally: Tally) -> Finding | None:
    """Feed the input of a seed, and judge how it ended and what it cost."""
    made = made_by(target, seed)
    tally.inputs += 1
    tally.bytes += len(made)
    weighed = seed % _MEMORY_EVERY == 0
    if weighed:
        tracemalloc.start()
    began_s = time.thread_time()
    try:
        what = fed(target, made, tally)
        took_s = time.thread_time() - began_s
        if weighed and not target.is_yaml:
            what = what or _too_heavy(made)
    finally:
        if weighed:
            tracemalloc.stop()
    if not weighed:
        what = what or _too_slow(target, made, took_s, tally)
    return Finding(target.name, seed, what, made) if what else None


def fed(target: Target, made: bytes, tally: Tally | None = None) -> str:
    """Why the end was bad; "" for a result or a refusal."""
    try:
        target.feed(made)
    except target.refusals as refusal:
        if tally is not None:
            tally.refused += 1
        return "" if len(str(refusal)) <= 4000 else f"a refusal of {len(str(refusal))} characters"
    except Exception as error:  # noqa: BLE001 - anything else is what is looked for
        return f"{type(error).__name__}: {str(error)[:300]}"
    return ""


def _too_heavy(made: bytes) -> str:
    _, peak = tracemalloc.get_traced_memory()
    allowed = _BASE_BYTES + _PER_BYTE * len(made)
    return f"{peak} bytes at the peak, {allowed} allowed" if peak > allowed else ""


def _too_slow(target: Target, made: bytes, took_s: float, tally: Tally) -> str:
    per_byte_s = _YAML_PER_BYTE_S if target.is_yaml else _PER_BYTE_S
    allowed_s = _BASE_S + per_byte_s * len(made)
    for _ in range(_TRIES):
        if took_s <= allowed_s:
            tally.slowest_s = max(tally.slowest_s, took_s)
            return ""
        gc.collect()
        began_s = time.thread_time()
        fed(target, made)
        took_s = min(took_s, time.thread_time() - began_s)
    return f"{took_s:.2f} s of CPU, {allowed_s:.2f} s allowed"


class Ceiling:
    """Watches the memory of the whole process."""

    def __init__(self) -> None:
        self._at_first_kib = 0

    def passed(self) -> str:
        """Why there is too much; the first call, after a first round, says what is normal."""
        unit = 1024 if sys.platform == "darwin" else 1
        peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit
        if not self._at_first_kib:
            self._at_first_kib = peak_kib
        grown_kib = peak_kib - self._at_first_kib
        return f"the process grew by {grown_kib} KiB" if grown_kib > _GROWTH_KIB else ""
