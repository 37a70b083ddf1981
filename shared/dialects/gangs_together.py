"""Koordinator's list of gangs that are admitted together, on pods and on PodGroups.

The gangs of a list are one gang of Tutti. Its name is made of theirs, so that the pods of each of
them find the same one.
"""

import hashlib
from typing import Final

import msgspec

#: The list as JSON: ["namespace/name", ...].
GROUPS: Final = "gang.scheduling.koordinator.sh/groups"
#: Gangs that one list may name. Koordinator has no limit, but each pod carries the minima of all.
_TOGETHER_MAX: Final = 50
#: Names of gangs are cut at this length.
_NAME_CHARACTERS_MAX: Final = 253
_HASH_CHARACTERS: Final = 16

_decode: Final = msgspec.json.Decoder(list[str]).decode


def other_gangs(text: str, namespace: str, own: str) -> tuple[tuple[str, ...], str]:
    """The names of the gangs that are admitted together with the gang `own`, sorted, and what is
    wrong with the list; then there are none.
    """
    if not text:
        return (), ""
    try:
        listed = _decode(text)
    except msgspec.MsgspecError as error:
        return (), str(error)
    found: set[str] = set()
    for one in listed:
        place, _, name = one.partition("/")
        if not place or not name:
            return (), f'"{one[:50]}" is not a gang as namespace/name'
        if place != namespace:
            return (), f'"{one[:50]}" is a gang of another namespace'
        found.add(name)
    found.discard(own)
    if len(found) >= _TOGETHER_MAX:
        return (), f"names more than {_TOGETHER_MAX} gangs"
    return tuple(sorted(found)), ""


def objection_to_list(text: str, namespace: str, own: str) -> str:
    """Why a PodGroup with this list is not planned: the other gangs' minima are known from pods
    only. "": it is planned, because the list names no other gang.
    """
    others, objection = other_gangs(text, namespace, own)
    if others:
        return "is read on pods only: declare the gangs in annotations of their pods"
    return objection


def name_of_all(names: tuple[str, ...]) -> str:
    """The name of the gang that these gangs are together; different for different names."""
    name = ",".join(sorted(names))
    if len(name) <= _NAME_CHARACTERS_MAX:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_CHARACTERS]
    return f"{name[: _NAME_CHARACTERS_MAX - _HASH_CHARACTERS - 1]},{digest}"
