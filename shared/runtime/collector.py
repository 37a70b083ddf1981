"""Sets how often Python's cyclic garbage collector runs.

Objects of services live long (pods, gangs, reservations) and are freed by reference counts; cycles
are rare. With the default, a pass every 700 allocations, the collector takes a sixth of the
planner's CPU.
"""

import gc
from typing import Final

#: Containers allocated and not freed before the youngest generation is collected: a few megabytes.
_YOUNG: Final = 20_000
#: Passes over the youngest generation per pass over the middle one, and those per full pass. (A
#: full pass also waits until the live objects have grown by a quarter.)
_MIDDLE: Final = 20
_OLD: Final = 100


def relax() -> None:
    """Collect cycles less often than by default, for the whole process."""
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
