"""Growing int64 grids with resources as rows and nodes as columns, a log of changed columns, and
amounts by row.

Amounts are clamped to `AMOUNT_MAX`, so that sums over a node's pods cannot overflow.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Slots: TypeAlias = slice | Ints
"""A selection of nodes: a slice of the columns, or an array of column numbers."""

_Item = TypeVar("_Item", np.int64, np.bool_)
_Key = TypeVar("_Key", int, str)
_Amount = TypeVar("_Amount", int, Fraction)

#: 9 petabytes, 9 trillion CPUs. A thousand pods of this size still add up below 2**63.
AMOUNT_MAX: Final = 2**53
#: Shares of the cluster are compared in millionths.
_WHOLE: Final = 1_000_000
_COLUMNS_MIN: Final = 64
_ROWS_MIN: Final = 8
#: Rows from which on names that only groups' minima have share one row. Every row is as long as
#: there are nodes, clusters have some dozens, and users write as many groups as they like.
SHARED_FROM_ROWS: Final = 1_000
#: The name of that row. No node has any of it.
SHARED: Final = "other resources that no node has"


def clamped(amount: int) -> int:
    """The amount, limited to 0 to `AMOUNT_MAX`."""
    return max(0, min(amount, AMOUNT_MAX))


def requested(amount: int) -> int:
    """A pod's request, limited to 0 to `AMOUNT_MAX + 1`: a request above the maximum fits on no
    node, even if the node's amount was clamped.
    """
    return max(0, min(amount, AMOUNT_MAX + 1))


def add_amounts(
    sums: dict[_Key, _Amount], amounts: Iterable[tuple[_Key, _Amount]], times: int = 1
) -> None:
    """Add amounts, by resource row or name, to sums, so many times."""
    for key, amount in amounts:
        sums[key] = sums.get(key, 0) + amount * times


def dominant_share(held: Mapping[int, int], totals: Sequence[int]) -> int:
    """The largest share of the cluster's totals that is held, in millionths; both by row."""
    most = 0
    for row, amount in held.items():
        if row < len(totals) and totals[row] > 0:
            most = max(most, amount * _WHOLE // totals[row])
    return most


class ResourceIndex:
    """Resource name -> row; rows are never removed."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._rows: dict[str, int] = {}

    def row(self, name: str) -> int:
        """Row of a resource; a new name gets the next row."""
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = len(self.names)
            self.names.append(name)
        return row

    def row_of_minimum(self, name: str) -> int:
        """Row of a resource in a group's `minResources`: beyond `SHARED_FROM_ROWS`, unknown names
        have one row together.
        """
        if len(self.names) < SHARED_FROM_ROWS or name in self._rows:
            return self.row(name)
        return self.row(SHARED)

    def find(self, name: str) -> int | None:
        """Row of a resource; None if no object has named it."""
        return self._rows.get(name)

    @contextmanager
    def provisional(self) -> Generator[None]:
        """Drop the rows that are added within the context when it ends: no object has named them.
        Nothing that is made within the context and knows rows may outlast it.
        """
        known = len(self.names)
        try:
            yield
        finally:
            for name in self.names[known:]:
                del self._rows[name]
            del self.names[known:]


class Grid:
    """A two-dimensional int64 array that doubles as it grows; new cells are zero."""

    def __init__(self, rows: int = _ROWS_MIN, columns: int = _COLUMNS_MIN) -> None:
        self.cells: Ints = np.zeros((rows, columns), dtype=np.int64)

    def ensure(self, rows: int, columns: int) -> None:
        have_rows, have_columns = self.cells.shape
        if rows <= have_rows and columns <= have_columns:
            return
        grown = np.zeros(
            (_doubled(have_rows, rows), _doubled(have_columns, columns)), dtype=np.int64
        )
        grown[:have_rows, :have_columns] = self.cells
        self.cells = grown

    def copy(self) -> "Grid":
        grid = Grid(1, 1)
        grid.cells = self.cells.copy()
        return grid


def grown(array: npt.NDArray[_Item], size: int) -> npt.NDArray[_Item]:
    """The array extended with zeros (or False) to at least `size`."""
    if size <= len(array):
        return array
    larger = np.zeros(_doubled(len(array), size), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def _doubled(have: int, wanted: int) -> int:
    size = max(have, 1)
    while size < wanted:
        size *= 2
    return size


class ChangeLog:
    """A log of changed columns, so that readers update only these.

    A position is the number of changes since the beginning. The log drops its older half when it
    exceeds its bound; a reader with an older position must read all columns again.
    """

    def __init__(self, bound: int = 8192) -> None:
        self._bound = bound
        self._slots: list[int] = []
        self._forgotten = 0

    @property
    def position(self) -> int:
        """The position after the newest change."""
        return self._forgotten + len(self._slots)

    def add(self, slot: int) -> None:
        self._slots.append(slot)
        if len(self._slots) > self._bound:
            self._forget()

    def extend(self, slots: Iterable[int]) -> None:
        self._slots.extend(slots)
        if len(self._slots) > self._bound:
            self._forget()

    def since(self, position: int, limit: int) -> Ints | None:
        """Columns changed since `position`, sorted and distinct; None if there were more than
        `limit` changes or the log no longer has them, so that all columns must be read.
        """
        start = position - self._forgotten
        if start < 0 or len(self._slots) - start > limit:
            return None
        return np.array(sorted(set(self._slots[start:])), dtype=np.int64)

    def _forget(self) -> None:
        half = len(self._slots) - self._bound // 2
        del self._slots[:half]
        self._forgotten += half
