"""Integer columns that grow: resources as rows, nodes as columns, and which columns changed.

Everything is int64. Amounts are clamped to `AMOUNT_MAX`, so that sums over a node's pods cannot
overflow whatever a manifest says.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Slots: TypeAlias = slice | Ints
"""Which nodes: a slice of the columns, or an array of column numbers."""

#: 9 petabytes, 9 trillion CPUs. A thousand pods of this size still add up below 2**63.
AMOUNT_MAX: Final = 2**53
_COLUMNS_MIN: Final = 64
_ROWS_MIN: Final = 8


def clamped(amount: int) -> int:
    """The amount as the columns keep it."""
    return max(0, min(amount, AMOUNT_MAX))


def requested(amount: int) -> int:
    """The amount that a pod asks for as the columns keep it: beyond the clamp it is more than any
    node is taken to have, so that two clamped amounts never pass for equal.
    """
    return max(0, min(amount, AMOUNT_MAX + 1))


class ResourceIndex:
    """Resource name -> row; rows are never given back, their number is that of distinct names ever
    seen.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._rows: dict[str, int] = {}

    def row(self, name: str) -> int:
        """Row of a resource, made when it is new."""
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = len(self.names)
            self.names.append(name)
        return row

    def find(self, name: str) -> int | None:
        """Row of a resource, None when no object has named it yet."""
        return self._rows.get(name)


class Grid:
    """A two-dimensional int64 array that doubles as it grows; new cells are zero."""

    def __init__(self, rows: int = _ROWS_MIN, columns: int = _COLUMNS_MIN) -> None:
        self.cells: Ints = np.zeros((rows, columns), dtype=np.int64)

    def ensure(self, rows: int, columns: int) -> None:
        """Make room for at least this many rows and columns."""
        have_rows, have_columns = self.cells.shape
        if rows <= have_rows and columns <= have_columns:
            return
        grown = np.zeros(
            (_doubled(have_rows, rows), _doubled(have_columns, columns)), dtype=np.int64
        )
        grown[:have_rows, :have_columns] = self.cells
        self.cells = grown

    def copy(self) -> "Grid":
        """An independent grid with the same cells."""
        grid = Grid(1, 1)
        grid.cells = self.cells.copy()
        return grid


def grown_ints(array: Ints, size: int) -> Ints:
    """The same numbers in an array of at least `size`, zeros behind."""
    if size <= len(array):
        return array
    grown = np.zeros(_doubled(len(array), size), dtype=np.int64)
    grown[: len(array)] = array
    return grown


def grown_bools(array: Bools, size: int) -> Bools:
    """The same flags in an array of at least `size`, False behind."""
    if size <= len(array):
        return array
    grown = np.zeros(_doubled(len(array), size), dtype=np.bool_)
    grown[: len(array)] = array
    return grown


def _doubled(have: int, wanted: int) -> int:
    size = max(have, 1)
    while size < wanted:
        size *= 2
    return size


class ChangeLog:
    """Which columns changed since a reader last looked, so that it repairs these and not all.

    A position is a count of changes since the beginning. The log forgets its older half when it
    outgrows its bound; a reader that is behind that must look at everything again.
    """

    def __init__(self, bound: int = 8192) -> None:
        self._bound = bound
        self._slots: list[int] = []
        self._forgotten = 0

    @property
    def position(self) -> int:
        """Behind the newest change."""
        return self._forgotten + len(self._slots)

    def add(self, slot: int) -> None:
        """One column changed."""
        self._slots.append(slot)
        if len(self._slots) > self._bound:
            self._forget()

    def extend(self, slots: Iterable[int]) -> None:
        """Several columns changed."""
        self._slots.extend(slots)
        if len(self._slots) > self._bound:
            self._forget()

    def since(self, position: int, limit: int) -> Ints | None:
        """Columns changed since `position`, each once; None: too many or forgotten, look at
        everything.
        """
        start = position - self._forgotten
        if start < 0 or len(self._slots) - start > limit:
            return None
        return np.array(sorted(set(self._slots[start:])), dtype=np.int64)

    def _forget(self) -> None:
        half = len(self._slots) - self._bound // 2
        del self._slots[:half]
        self._forgotten += half
