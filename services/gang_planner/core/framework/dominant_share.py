"""Dominant shares: the largest part of any cluster resource that a gang or queue holds."""

from collections.abc import Mapping, Sequence
from typing import Final

#: Shares are compared in millionths of the cluster.
_WHOLE: Final = 1_000_000


def dominant_share(held: Mapping[int, int], totals: Sequence[int]) -> int:
    """Largest share of the totals that is held, in millionths; both are by resource row."""
    most = 0
    for row, amount in held.items():
        if row < len(totals) and totals[row] > 0:
            most = max(most, amount * _WHOLE // totals[row])
    return most
