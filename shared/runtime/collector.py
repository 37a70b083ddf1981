"""How often Python's collector of cycles runs in our processes.

What services allocate lives long (pods, gangs, rows of kept room) and is freed by reference counts;
cycles are rare. Its defaults, a pass every 700 allocations, cost the planner a sixth of its CPU.
"""

import gc
from typing import Final

#: Containers allocated and not freed before the youngest are looked at: a few megabytes at most.
_YOUNG: Final = 20_000
#: Passes over the young per pass over the middle-aged, and those per pass over everything, which
#: happens only once what lives has grown by a quarter as well.
_MIDDLE: Final = 20
_OLD: Final = 100


def relax() -> None:
    """Collect cycles less often than by default, for the whole process."""
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
