"""A gang's name for its users. Objects that controllers make have names with a UID, which no user
chose: `second-a843473f-…` is the group of the Job `second`.
"""

import re
from typing import Final

from shared.model.gang_keys import MADE_FOR_PODS_PREFIX

_UID: Final = re.compile(
    r"(?P<stem>.*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-(?P<part>[^:]+))?(?::.*)?"
)
_UNNAMED: Final = MADE_FOR_PODS_PREFIX.removesuffix("-")


def gang_title(name: str, owner: str = "") -> str:
    """The gang's name for its users, as unique in its namespace as names are.

    Args:
        name: The gang's own name.
        owner: The object that its user created, as "job/second"; "": none is known.

    Returns:
        The owner, with the gang's number among the owner's or its own name behind it, if it has one
        that does not follow from the owner's: "leaderworkerset/serve (0)". Without an owner, the
        gang's name without a UID.
    """
    found = _UID.fullmatch(name)
    stem, part = (found["stem"], found["part"]) if found is not None else (name, None)
    if not owner:
        return name if stem == _UNNAMED else _with_part(stem, part)
    if part is None and found is None and name != owner.partition("/")[2]:
        part = name
    return _with_part(owner, part)


def title_of_place(place: str, owner: str = "") -> str:
    """The title of the gang "namespace/name", behind its namespace."""
    namespace, slash, name = place.rpartition("/")
    return f"{namespace}{slash}{gang_title(name, owner)}"


def _with_part(title: str, part: str | None) -> str:
    return f"{title} ({part})" if part else title
