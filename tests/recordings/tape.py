"""A tape: every call of a planner's public methods with its arguments, and what `step` returned.

A tape taken from an older version of the planner is played to a newer one: decisions, notes and the
instant of the next cycle must be the same bytes. Verdicts may differ in the sentences that people
read, in fields that are newer than the tape, and in the order and the nodes of waiting members; one
that differs from its gang's last one in nothing else may be published in addition. Members that
differ only in their ResourceClaims may have one report in place of one each (ADR 0090).
"""

import functools
import lzma
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.cycle import Step
from services.gang_planner.core.planner import Planner
from shared.contracts import codec
from shared.contracts.cluster import PodChanges
from shared.model.objects import Shape

#: Fields of verdicts and answers that hold sentences for users.
_SENTENCES: Final = frozenset({"message", "sentence"})
#: Fields of verdicts that no planner set when the tapes were taken.
_NEWER: Final = frozenset({"pod_reason", "unschedulable"})
#: Wording that has changed since the tapes were taken. Verdicts, notes and decisions are read in
#: today's words: a verdict that an earlier planner published is published again when its words
#: differ, and the message of a note is part of later verdicts and decisions.
_REWORDED: Final = (
    (
        "its members under way are being proved first, and the others count on them",
        "its bindings in flight are validated first; its other members depend on them",
    ),
    (
        "all of it is being evicted for another gang; it is placed whole when it has left",
        "all its pods are being evicted for another gang; it is placed whole after that",
    ),
    ("the picture of the cluster is stale", "the view of the cluster is stale"),
    ("and no room is held for the others", "and no capacity is reserved for the other members"),
    ("then their room is held", "then their capacity is reserved"),
    ("; the others would fit alone", "; the other pods would fit alone"),
    ("of the others: ", "of the other members: "),
    ("and nobody would make them again", "and no controller would create them again"),
    (
        "what its controller makes again waits for room",
        "pods that its controller creates again wait for capacity",
    ),
    ("s, and nobody restores it", "s, and no replacement is expected"),
    ("; the others found no room", "; the other members found no free capacity"),
    ("; the others do not exist", "; the other members do not exist"),
    ("the kubelet says nothing", "the kubelet reports no reason"),
    (
        "each had a part of the room that one of them needs",
        "each had a part of the capacity that one of them needs",
    ),
    (": room for its successor is held on", ": capacity for its successor is reserved on"),
    (": no node has room, its successor", ": no node has free capacity, its successor"),
    ("there is no room for it, and", "free capacity does not suffice for it, and"),
    (" for room in queue", " for capacity in queue"),
    (" has room for it again", " has quota for it again"),
    ("takes back what it deserves", "reclaims what it deserves"),
    ("no room for its minResources", "not enough free capacity for its minResources"),
    (
        "its bindings in flight are validated first; its other",
        "the API server has not answered its bindings in flight; its other",
    ),
    ("; it is placed whole after that", "; it is placed again as a whole after that"),
    (
        "the view of the cluster is stale: no watcher has renewed it",
        "the planner's cluster state is stale: no watcher has updated it",
    ),
    ("; the other pods would fit alone", "; each of the other pods would fit alone"),
    ("reclaims what it deserves", "reclaims its deserved amount"),
    ("holds what it deserves (", "holds its deserved amount ("),
    ("for the rest of what is free", "for the rest of the free capacity"),
    ("may not take what other queues are guaranteed", "may not use the guarantees of other queues"),
    ("goes first in queue", "has precedence in queue"),
    ("1 member that counts less in the gang itself", "1 less important member of the gang itself"),
    ("members that count less in the gang itself", "less important members of the gang itself"),
    ("what is bound of it is being released", "its bound pods are being released"),
    ("are left since ", "have been left for "),
    ("one of its members lately", "one of its members recently"),
    ("; it is tried again ", "; Tutti retries it "),
    ("it was released: ", "its bound pods were released: "),
    ("the last eviction for it came to nothing", "the last eviction for it failed"),
)
_Decode = Callable[[bytes], Any]
_decode_number: Final[_Decode] = msgspec.msgpack.Decoder(int | None).decode
_decode_plain: Final[_Decode] = msgspec.msgpack.Decoder().decode
_decode_shape: Final = functools.lru_cache(maxsize=4_096)(msgspec.msgpack.Decoder(Shape).decode)
GangName = tuple[str, str]
"""Namespace and name."""


def _in_todays_words(record: bytes) -> bytes:
    """The same record, with the wording that has changed replaced."""
    if not any(before.encode() in record for before, _ in _REWORDED):
        return record
    return msgspec.msgpack.encode(_reworded(_decode_plain(record)))


def _decode_verdict(verdict: bytes) -> Any:
    return codec.decode_verdict(_in_todays_words(verdict))


def _decode_record(record: bytes) -> Any:
    return codec.decode_decision_record(_in_todays_words(record))


def _encode_reworded(record: bytes) -> bytes:
    return codec.encode(_decode_record(record))


def _reworded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reworded(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_reworded(entry) for entry in value]
    if isinstance(value, str):
        for before, now in _REWORDED:
            value = value.replace(before, now)
    return value


#: How the arguments of each taped method are decoded, in their order; the last one repeats.
_ARGUMENTS: Final[Mapping[str, tuple[_Decode, ...]]] = {
    "apply_cluster": (_decode_number, codec.decode_cluster),
    "apply_decision": (_decode_number, _decode_record),
    "apply_outcome": (_decode_number, codec.decode_outcome),
    "apply_verdict": (_decode_verdict,),
    "configure": (msgspec.msgpack.Decoder(str).decode,),
    "decided": (_decode_number,),
    "lead": (_decode_number,),
    "load_snapshot": (codec.decode_snapshot_answer,),
    "restore": (_decode_record,),
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


def play(tape: Tape) -> int:
    """Call a new planner as the tape says; returns the number of decisions and notes compared.

    Raises:
        Difference: A step returned something else than the taped one.
    """
    planner: Planner | None = None
    undecided: deque[Any] = deque()
    compared = 0
    shown: dict[str, Any] = {}
    claiming: set[GangName] = set()
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
                if call.method == "load_snapshot":
                    claiming.update(_claiming(one for page in arguments for one in page.records))
            case "decided":
                assert planner is not None
                planner.decided(arguments[0], undecided.popleft())
            case "step":
                assert planner is not None
                step = planner.step(*arguments)
                _compare(number, call, step, shown, claiming)
                undecided.extend((*step.decisions, *step.notes))
                compared += len(step.decisions) + len(step.notes)
            case _:
                getattr(planner, call.method)(*arguments)
                if call.method == "apply_cluster":
                    claiming.update(_claiming(arguments[1:]))
                elif call.method == "apply_verdict":
                    _show(shown, _plain(call.arguments))
    return compared


def _decode(call: Call) -> list[Any]:
    decoders = _ARGUMENTS[call.method]
    return [
        decoders[min(index, len(decoders) - 1)](argument)
        for index, argument in enumerate(call.arguments)
    ]


def _compare(
    number: int, call: Call, step: Step, shown: dict[str, Any], claiming: AbstractSet[GangName]
) -> None:
    """Compare a step with the taped one; `shown` has the last verdict of each gang."""
    decisions, notes, found_verdicts, next_wakeup_ms = _encoded_step(step)
    expected_verdicts = _plain(call.verdicts)
    verdicts = _as_taped(_plain(found_verdicts), expected_verdicts, shown, claiming)
    _show(shown, expected_verdicts)
    for name, expected, found in (
        ("decisions", tuple(map(_encode_reworded, call.decisions)), decisions),
        ("notes", tuple(map(_encode_reworded, call.notes)), notes),
        ("verdicts", expected_verdicts, verdicts),
        ("next_wakeup_ms", call.next_wakeup_ms, next_wakeup_ms),
    ):
        if expected != found:
            raise Difference(f"call {number}, {name}: {_first(expected, found)}")


def _show(shown: dict[str, Any], verdicts: tuple[Any, ...]) -> None:
    shown.update((verdict["gang_id"], _lasting(verdict)) for verdict in verdicts)


def _lasting(verdict: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in verdict.items() if key not in {"at_ms", "epoch"}}


def _as_taped(
    found: tuple[Any, ...],
    expected: tuple[Any, ...],
    shown: dict[str, Any],
    claiming: AbstractSet[GangName],
) -> tuple[Any, ...]:
    """The verdicts without those that repeat their gang's last one and are not expected. Those that
    say the same as the expected ones are these.
    """
    left = deque(expected)
    kept: list[Any] = []
    for verdict in found:
        if left and says_the_same(left[0], verdict, claiming):
            kept.append(left.popleft())
        elif not says_the_same(shown.get(verdict["gang_id"]), _lasting(verdict), claiming):
            kept.append(verdict)
    return tuple(kept)


def _plain(verdicts: tuple[bytes, ...]) -> tuple[Any, ...]:
    """Verdicts without sentences and newer fields, with their waiting members by UID."""
    found = [_without_sentences(_decode_plain(verdict)) for verdict in verdicts]
    for verdict in found:
        if "waiting" in verdict:
            # No planner nominated nodes when the tapes were taken.
            for pod in verdict["waiting"]:
                pod.pop("node", None)
            verdict["waiting"].sort(key=lambda pod: pod["uid"])
    return tuple(found)


def says_the_same(expected: Any, found: dict[str, Any], claiming: AbstractSet[GangName]) -> bool:
    """Whether a verdict is the expected one. `claiming`: gangs with ResourceClaims; the reports of
    one member each, of a role of theirs, count as one report of that role.
    """
    if expected == found:
        return True
    if expected is None or (found["namespace"], found["name"]) not in claiming:
        return False
    before, now = _reports(expected), _reports(found)
    number = Counter(_role(one) for one in before)
    roles = {role for role, reports in number.items() if reports > 1}
    roles -= {_role(one) for one in before if one.get("wanted") != 1}
    if not roles or len(now) >= len(before):
        return False
    return _without_reports(expected) == _without_reports(found) and (
        _joined(before, roles) == _joined(now, roles)
    )


def _reports(verdict: dict[str, Any]) -> list[Any]:
    found: list[Any] = verdict.get("why", {}).get("shapes", [])
    return found


def _role(report: dict[str, Any]) -> str:
    return str(report.get("role", ""))


def _without_reports(verdict: dict[str, Any]) -> dict[str, Any]:
    return {**verdict, "why": {**verdict.get("why", {}), "shapes": None}}


def _joined(reports: list[Any], roles: AbstractSet[str]) -> list[Any]:
    """The reports, those of each of these roles as one: how many members are wanted, whether any
    fits, and why nodes refuse them. Missing amounts are not compared.
    """
    found = [one for one in reports if _role(one) not in roles]
    for role in sorted(roles):
        of_role = [one for one in reports if _role(one) == role]
        reasons = [each for one in of_role for each in one.get("reasons", ())]
        found.append(
            {
                "role": role,
                "wanted": sum(one["wanted"] for one in of_role),
                "fits": any(one.get("fit") for one in of_role),
                "nodes": {one.get("nodes", 0) for one in of_role},
                "reasons": {(each["reason"], each.get("count", 0)) for each in reasons},
            }
        )
    return found


def _claiming(changes: Iterable[Any]) -> Iterator[GangName]:
    """The gangs of pods with ResourceClaims in records of CLUSTER."""
    for record in changes:
        for pod in record.changed if isinstance(record, PodChanges) else ():
            if _decode_shape(pod.shape).device_claims:
                yield pod.namespace, pod.group_name
                if pod.owner is not None:
                    yield pod.namespace, pod.owner.name


def _without_sentences(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_sentences(entry)
            for key, entry in value.items()
            if key not in _SENTENCES and key not in _NEWER
        }
    if isinstance(value, list):
        return [_without_sentences(entry) for entry in value]
    # Today the reason names the request and its selector in parentheses (ADR 0077).
    if isinstance(value, str) and value.startswith("cannot allocate all claims ("):
        return value.partition(" (")[0]
    return value


def _first(expected: Any, found: Any) -> str:
    """The first entry that differs, decoded."""
    if not isinstance(expected, tuple) or not isinstance(found, tuple):
        return f"{found} instead of {expected}"
    for one, other in zip(expected, found, strict=False):
        if one != other:
            return f"{_readable(other)} instead of {_readable(one)}"
    return f"{len(found)} instead of {len(expected)}"


def _readable(value: Any) -> str:
    return repr(_decode_plain(value) if isinstance(value, bytes) else value)[:2_000]
