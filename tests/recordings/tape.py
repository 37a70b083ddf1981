"""A tape: every call of a planner's public methods with its arguments, and what `step` returned.

A tape taken from an older version of the planner is played to a newer one: decisions, notes,
verdicts and the instant of the next cycle must be the same bytes. Verdicts that change on purpose
are taken again (`python -m tests.recordings again`), which decisions and notes must survive.
"""

import functools
import lzma
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.cycle import Step
from services.gang_planner.core.planner import Planner
from shared.contracts import codec

_Decode = Callable[[bytes], Any]
_decode_number: Final[_Decode] = msgspec.msgpack.Decoder(int | None).decode
#: How the arguments of each taped method are decoded, in their order; the last one repeats.
_ARGUMENTS: Final[Mapping[str, tuple[_Decode, ...]]] = {
    "apply_cluster": (_decode_number, codec.decode_cluster),
    "apply_decision": (_decode_number, codec.decode_decision_record),
    "apply_outcome": (_decode_number, codec.decode_outcome),
    "apply_verdict": (codec.decode_verdict,),
    "configure": (msgspec.msgpack.Decoder(str).decode,),
    "decided": (_decode_number,),
    "lead": (_decode_number,),
    "load_snapshot": (codec.decode_snapshot_answer,),
    "restore": (codec.decode_decision_record,),
    "step": (_decode_number,),
    "would_fit": (codec.decode_fit_request,),
}


class Call(msgspec.Struct, frozen=True, array_like=True):
    """One call, each argument as msgpack; of `step` also what it returned."""

    method: str
    arguments: tuple[bytes, ...]
    decisions: tuple[bytes, ...] = ()
    notes: tuple[bytes, ...] = ()
    verdicts: tuple[bytes, ...] = ()
    next_wakeup_ms: int | None = None


class Tape(msgspec.Struct):
    """The calls that one planner received since it was created."""

    calls: list[Call] = []


@contextmanager
def taping() -> Iterator[list[Tape]]:
    """Tape every planner created inside the block, in the order of their creation."""
    tapes: list[Tape] = []
    originals = {method: getattr(Planner, method) for method in _ARGUMENTS}
    by_planner: dict[int, tuple[Planner, Tape]] = {}

    def tape_of(planner: Planner) -> Tape:
        known = by_planner.get(id(planner))
        if known is None:
            tape = Tape()
            tapes.append(tape)
            # The planner is kept: its id must not be used again.
            by_planner[id(planner)] = (planner, tape)
            return tape
        return known[1]

    def taped(method: str) -> Callable[..., Any]:
        original = originals[method]

        @functools.wraps(original)
        def call(planner: Planner, *arguments: Any, **named: Any) -> Any:
            tape = tape_of(planner)
            encoded = tuple(_encode(method, arguments, named))
            if method != "step":
                tape.calls.append(Call(method, encoded))
                return original(planner, *arguments, **named)
            step = original(planner, *arguments, **named)
            tape.calls.append(Call(method, encoded, *_encoded_step(step)))
            return step

        return call

    for method in originals:
        setattr(Planner, method, taped(method))
    try:
        yield tapes
    finally:
        for method, original in originals.items():
            setattr(Planner, method, original)


def _encode(method: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Iterator[bytes]:
    match method:
        case "configure":
            yield codec.encode(arguments[0].source)
        case "load_snapshot" | "restore":
            yield from map(codec.encode, arguments[0])
        case "decided":
            yield codec.encode(arguments[0])
        case "step":
            now_ms, in_flight_max, synced_ms = _step_arguments(*arguments, **named)
            yield from map(codec.encode, (now_ms, in_flight_max, synced_ms))
        case _:
            yield from map(codec.encode, arguments)


def _step_arguments(
    now_ms: int, in_flight_max: int = 0, synced_ms: int | None = None
) -> tuple[int, int, int | None]:
    return now_ms, in_flight_max, synced_ms


def _encoded_step(
    step: Step,
) -> tuple[tuple[bytes, ...], tuple[bytes, ...], tuple[bytes, ...], int | None]:
    return (
        tuple(map(codec.encode, step.decisions)),
        tuple(map(codec.encode, step.notes)),
        tuple(map(codec.encode, step.verdicts)),
        step.next_wakeup_ms,
    )


def write_tapes(tapes: list[Tape], path: Path) -> None:
    """Write the tapes to `path`, compressed."""
    path.write_bytes(lzma.compress(msgspec.msgpack.encode(tapes), preset=9))


def read_tapes(path: Path) -> list[Tape]:
    """Read the tapes that `write_tapes` wrote."""
    return msgspec.msgpack.decode(lzma.decompress(path.read_bytes()), type=list[Tape])


class Difference(Exception):
    """The planner decided otherwise than the tape says."""


def play(tape: Tape, *, verdicts: bool = True) -> int:
    """Call a new planner as the tape says; returns the number of decisions and notes compared.

    `verdicts`: compare these, too, and the instants of cycles, on which their publishing depends.

    Raises:
        Difference: A step returned something else than the taped one.
    """
    planner: Planner | None = None
    undecided: deque[Any] = deque()
    compared = 0
    for number, call in enumerate(tape.calls):
        arguments = _decode(call)
        match call.method:
            case "configure":
                if planner is None:
                    planner = Planner(parse_configuration(arguments[0]))
                else:
                    planner.configure(parse_configuration(arguments[0]))
            case "load_snapshot" | "restore":
                getattr(planner, call.method)(arguments)
            case "decided":
                assert planner is not None
                planner.decided(arguments[0], undecided.popleft())
            case "step":
                assert planner is not None
                step = planner.step(*arguments)
                _compare(number, call, step, verdicts=verdicts)
                undecided.extend((*step.decisions, *step.notes))
                compared += len(step.decisions) + len(step.notes)
            case _:
                getattr(planner, call.method)(*arguments)
    return compared


def taken_again(tape: Tape) -> Tape:
    """The tape with what today's planner returns.

    Raises:
        Difference: A decision or a note is another one.
    """
    with taping() as tapes:
        play(tape, verdicts=False)
    (found,) = tapes
    return found


def _decode(call: Call) -> list[Any]:
    decoders = _ARGUMENTS[call.method]
    return [
        decoders[min(index, len(decoders) - 1)](argument)
        for index, argument in enumerate(call.arguments)
    ]


def _compare(number: int, call: Call, step: Step, *, verdicts: bool) -> None:
    """Compare a step with the taped one."""
    decisions, notes, published, next_wakeup_ms = _encoded_step(step)
    compared: list[tuple[str, Any, Any]] = [
        ("decisions", call.decisions, decisions),
        ("notes", call.notes, notes),
    ]
    if verdicts:
        compared += [
            ("verdicts", call.verdicts, published),
            ("next_wakeup_ms", call.next_wakeup_ms, next_wakeup_ms),
        ]
    for name, expected, found in compared:
        if expected != found:
            raise Difference(f"call {number}, {name}: {_first(expected, found)}")


def _first(expected: Any, found: Any) -> str:
    """The first entry that differs, decoded."""
    if not isinstance(expected, tuple) or not isinstance(found, tuple):
        return f"{found} instead of {expected}"
    for one, other in zip(expected, found, strict=False):
        if one != other:
            return f"{_readable(other)} instead of {_readable(one)}"
    return f"{len(found)} instead of {len(expected)}"


def _readable(value: Any) -> str:
    return repr(msgspec.msgpack.decode(value) if isinstance(value, bytes) else value)[:2_000]
