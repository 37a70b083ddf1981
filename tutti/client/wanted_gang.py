"""Which gang a caller names. Pure."""

from typing import Final
from uuid import UUID

import msgspec

from shared.contracts.visibility import Gang
from tutti.client.submission import Submitted

_UUID_CHARACTERS: Final = 36


class WantedGang(msgspec.Struct, frozen=True, kw_only=True):
    """A gang by its name in a namespace ("": the client's)."""

    namespace: str
    name: str
    #: Its possible names, if they are known; otherwise `is_named` compares with `name`.
    names: frozenset[str] = frozenset()

    def is_named(self, gang: str) -> bool:
        """Whether a gang of this name is meant."""
        return gang in self.names if self.names else is_named(gang, self.name)


def wanted_gang(given: str | Submitted | Gang, namespace: str) -> WantedGang:
    """The gang of a name, of an object that was submitted, or of a gang as it was read."""
    match given:
        case str():
            return WantedGang(namespace=namespace, name=given)
        case Submitted():
            names = frozenset({given.name, f"{given.name}-{given.uid}"})
            return WantedGang(namespace=given.namespace, name=given.name, names=names)
        case Gang(metadata=metadata):
            return WantedGang(
                namespace=metadata.namespace,
                name=metadata.name,
                names=frozenset({metadata.name}),
            )


def is_named(gang: str, name: str) -> bool:
    """Whether a gang's name is this name, or the one that the group of a Volcano Job of this name
    has: the Job's name and UID.
    """
    stem, end = gang[:-_UUID_CHARACTERS], gang[-_UUID_CHARACTERS:]
    return gang == name or (stem == f"{name}-" and is_uuid(end))


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID, as Kubernetes writes it."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
