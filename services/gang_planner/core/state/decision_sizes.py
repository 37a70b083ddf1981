"""How many bytes the entries of a decision have, so that each decision fits into a message, and so
does its outcome.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from shared.contracts.decisions import Binding, Victim
from shared.contracts.subjects import MESSAGE_BYTES_MAX

#: Upper bound of the entries in a message; the rest is for its other fields and the encoding.
ENTRIES_BYTES_MAX: Final = MESSAGE_BYTES_MAX - 32 * 1024
#: Field names, lengths and markers of one binding or victim in msgpack, or, if that is more, of its
#: entry in the outcome without texts.
ENTRY_OVERHEAD_BYTES: Final = 48


def victim_bytes(victims: Iterable[Victim]) -> int:
    """Upper bound of the bytes of these victims in a decision."""
    return sum(map(_victim_bytes, victims))


def binding_bytes(bindings: Iterable[Binding]) -> int:
    """Upper bound of the bytes of these bindings in a decision."""
    return sum(
        ENTRY_OVERHEAD_BYTES
        + len(binding.uid)
        + len(binding.namespace)
        + len(binding.name)
        + len(binding.node)
        for binding in bindings
    )


def parts_of(victims: Sequence[Victim]) -> Iterator[tuple[Victim, ...]]:
    """The victims in parts that fit into a decision each, in their order."""
    part: list[Victim] = []
    left = ENTRIES_BYTES_MAX
    for victim in victims:
        left -= _victim_bytes(victim)
        if left < 0:
            yield tuple(part)
            part, left = [], ENTRIES_BYTES_MAX - _victim_bytes(victim)
        part.append(victim)
    if part:
        yield tuple(part)


def _victim_bytes(victim: Victim) -> int:
    return ENTRY_OVERHEAD_BYTES + len(victim.uid) + len(victim.namespace) + len(victim.name)
