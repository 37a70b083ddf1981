"""What served resources have: those that are read, a read of one object, a list, and the cells of
their tables; those that are questions, an answer.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from services.api.authentication import User
from services.api.core.manifest_questions import ManifestQuestion, ManifestReply
from services.api.core.requests import ReadOptions, Target
from services.api.core.tables import Cells, Column
from shared.contracts.visibility import ListMeta

ReadManifests: TypeAlias = Callable[[str, ManifestQuestion], Awaitable[ManifestReply]]
"""The reply to a question of the user of this name. Raises RequestFailed, as it refuses."""


class Item(NamedTuple):
    """An object (it has `metadata`), and its JSON."""

    object: Any
    json: msgspec.Raw


class Page(NamedTuple):
    """Objects of a list, in order."""

    items: list[Item]
    metadata: ListMeta
    #: For the user; "": none.
    remark: str = ""


class ReadableResource(Protocol):
    """A resource that can be read. A caller has authorised the verb on the resource itself."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its table."""
        ...

    @property
    def cells(self) -> Cells:
        """The cells of an object's row, at an instant."""
        ...

    async def get(self, user: User, target: Target, /) -> Item:
        """One object. Raises RequestFailed: 404, or the user may not see it."""
        ...

    async def list(self, user: User, target: Target, options: ReadOptions, /) -> Page:
        """The objects that the user may see. Raises RequestFailed."""
        ...


class CreatableResource(Protocol):
    """A resource whose objects are questions: they are answered and not stored. A caller has
    authorised the verb on the resource itself.
    """

    async def create(self, user: User, target: Target, body: bytes, /) -> bytes:
        """The JSON of the object in the body, with its answer. Raises RequestFailed."""
        ...
