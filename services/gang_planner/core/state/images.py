"""Container images on nodes, by image name."""

from collections.abc import Mapping
from typing import Final

from shared.model.objects import Node

_NOWHERE: Final[Mapping[int, int]] = {}


class ImageTable:
    """Images that nodes report in their status."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[int, int]] = {}

    @property
    def any(self) -> bool:
        """Whether any node reports an image."""
        return bool(self._by_name)

    def put(self, slot: int, before: Node | None, after: Node | None) -> None:
        """Update the images of a slot after its node appeared, changed or left."""
        old = before.images if before is not None else ()
        new = after.images if after is not None else ()
        if old == new:
            return
        for name, _ in old:
            found = self._by_name.get(name, {})
            found.pop(slot, None)
            if not found:
                self._by_name.pop(name, None)
        for name, size_bytes in new:
            self._by_name.setdefault(name, {})[slot] = size_bytes

    def of(self, name: str) -> Mapping[int, int]:
        """Slot -> bytes of the image, for all nodes that have it."""
        return self._by_name.get(name, _NOWHERE)
