"""Interned pod shapes: each distinct shape is decoded once and becomes a small integer.

A pod carries its shape as bytes. Pods with equal bytes are interchangeable for every rule that
looks at nodes.
"""

from typing import Final

import msgspec
import numpy as np

from services.gang_planner.core.columns import Ints, ResourceIndex, requested
from shared.model.objects import Shape

PODS: Final = "pods"
_UNREADABLE: Final = Shape(requests=((PODS, 1),), unsupported=("its shape cannot be decoded",))


class ShapeEntry:
    """One shape, with its requests as rows and amounts. Only positive requests are kept: nothing
    asks for zero.
    """

    __slots__ = ("amounts", "attached", "best_effort", "column", "encoded", "id", "pairs", "rows", "shape")

    def __init__(
        self, shape_id: int, encoded: bytes, shape: Shape, resources: ResourceIndex
    ) -> None:
        self.id = shape_id
        self.encoded = encoded
        self.shape = shape
        self.pairs: tuple[tuple[int, int], ...] = tuple(
            (resources.row(name), requested(amount))
            for name, amount in shape.requests
            if amount > 0
        )
        self.rows: Ints = np.array([row for row, _ in self.pairs], dtype=np.int64)
        self.amounts: Ints = np.array([amount for _, amount in self.pairs], dtype=np.int64)
        #: Amounts standing, to be multiplied with a row of counts.
        self.column: Ints = self.amounts.reshape(-1, 1)
        #: Has claims, to volumes or devices.
        self.attached: bool = bool(shape.claims or shape.device_claims)
        #: Asks for nothing but its place in the node's count of pods.
        self.best_effort: bool = all(name == PODS or not amount for name, amount in shape.requests)


class ShapeTable:
    """All shapes seen; ids are never reused."""

    def __init__(self, resources: ResourceIndex) -> None:
        self.resources = resources
        self.entries: list[ShapeEntry] = []
        self._ids: dict[bytes, ShapeEntry] = {}
        self._decoder = msgspec.msgpack.Decoder(Shape)

    def intern(self, encoded: bytes) -> ShapeEntry:
        """The entry of a shape; bytes that are none become a shape that is never bound."""
        entry = self._ids.get(encoded)
        if entry is None:
            entry = self.make(len(self.entries), encoded)
            self._ids[encoded] = entry
            self.entries.append(entry)
        return entry

    def make(self, shape_id: int, encoded: bytes) -> ShapeEntry:
        """An entry that is not kept: for questions, which must not make the table grow."""
        try:
            shape = self._decoder.decode(encoded)
        except (msgspec.DecodeError, msgspec.ValidationError):
            shape = _UNREADABLE
        return ShapeEntry(shape_id, encoded, shape, self.resources)
