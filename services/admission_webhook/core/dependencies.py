"""Dependencies between named steps: whether they can be put in an order."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter


def find_ring(needs: Mapping[str, Iterable[str]]) -> list[str]:
    """A ring of names of which each needs the next, with the first repeated at the end; [] when
    there is none. A name without an entry in `needs` needs nothing.
    """
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        # In its list each name is needed by the next.
        return list(reversed(error.args[1]))
    return []
