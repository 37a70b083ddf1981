"""Change records: packs changed objects into messages of bounded size.

One record has the changes of one neutral kind; its encoding must fit into a message. A record that
does not fit is halved, which keeps the order of its changes.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from shared.contracts import cluster, codec
from shared.contracts.cluster import Gone, ObjectChanges
from shared.model.invariants import InvariantViolation
from shared.model.objects import KINDS, ClusterObject

#: The records of the neutral kinds, in the order of one flush. They are named after the structs.
RECORDS: Final[dict[str, type[ObjectChanges]]] = {
    kind: getattr(cluster, f"{struct.__name__}Changes") for kind, struct in KINDS.items()
}
_KIND_OF: Final = {struct: kind for kind, struct in RECORDS.items()}


def kind_of(change: ObjectChanges) -> str:
    """The neutral kind of a change record's objects."""
    return _KIND_OF[type(change)]


def record(
    kind: str,
    *,
    epoch: int,
    at_ms: int,
    changed: Iterable[ClusterObject] = (),
    removed: Iterable[Gone] = (),
) -> ObjectChanges:
    """The change record of one neutral kind; all of `changed` must be of that kind."""
    make: Any = RECORDS[kind]  # one call for many types whose `changed` differs
    made: ObjectChanges = make(
        epoch=epoch, at_ms=at_ms, changed=tuple(changed), removed=tuple(removed)
    )
    return made


def fitting(change: ObjectChanges, bytes_max: int) -> Iterator[tuple[ObjectChanges, bytes]]:
    """The record, halved until every part's encoding is at most `bytes_max`, with the encodings.

    Raises:
        InvariantViolation: A single object is larger than that: `shared.model.bounds` let it pass.
    """
    encoded = codec.encode(change)
    if len(encoded) <= bytes_max:
        yield change, encoded
        return
    changed, removed = change.changed, change.removed
    if len(changed) + len(removed) == 1:
        raise InvariantViolation(
            f"{(changed or removed)[0]!r:.300}",
            f"takes {len(encoded)} bytes, and a message holds {bytes_max}",
        )
    replace = msgspec.structs.replace
    if len(changed) > 1:
        half = len(changed) // 2
        parts = (
            replace(change, changed=changed[:half], removed=()),
            replace(change, changed=changed[half:], removed=removed),
        )
    elif changed:
        parts = (replace(change, removed=()), replace(change, changed=()))
    else:
        half = len(removed) // 2
        parts = (replace(change, removed=removed[:half]), replace(change, removed=removed[half:]))
    for part in parts:
        yield from fitting(part, bytes_max)
