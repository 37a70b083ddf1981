"""Makes a failing run smaller: fewer gangs, fewer faults, no small faults, while it still fails.

A run with something left out is another run, with other instants; whatever it breaks counts, as
long as the words are the same but for names and numbers. Tries are bounded: what is left after them
is small enough to read.
"""

import re
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from tests.simulation.running import Options, Result, run

T = TypeVar("T", str, int)

_TRIES_MAX: Final = 120
_PARTICULARS: Final = re.compile(r"[a-z0-9]*-?[0-9][a-z0-9-]*")


def shrink(options: Options) -> Options:
    """The smallest options found that break the same promise; `options` when they break none."""
    first = run(options)
    if not first.violations:
        return options
    wanted = _words(first)
    search = _Search(wanted)
    simple = msgspec.structs.replace(options, small=False)
    if search.fails(simple):
        options = simple
    names = [f"gang-{number}" for number in range(options.shape.gangs)]
    options = search.fewer(
        options, names, lambda kept: msgspec.structs.replace(options, gangs=frozenset(kept))
    )
    with_gangs = options
    return search.fewer(
        options,
        first.drawn,
        lambda kept: msgspec.structs.replace(with_gangs, faults=frozenset(kept)),
    )


class _Search:
    """Tries smaller and smaller parts."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self._tries = 0

    def fails(self, options: Options) -> bool:
        """Whether the same promise is broken with these."""
        self._tries += 1
        return _words(run(options)) == self._wanted

    def fewer(
        self, best: Options, items: list[T], with_items: Callable[[list[T]], Options]
    ) -> Options:
        """Leave out ever smaller parts of `items`, as long as it still fails."""
        part = len(items) // 2
        while part and self._tries < _TRIES_MAX:
            begin = 0
            while begin < len(items) and self._tries < _TRIES_MAX:
                kept = items[:begin] + items[begin + part :]
                candidate = with_items(kept)
                if self.fails(candidate):
                    best, items = candidate, kept
                else:
                    begin += part
            part //= 2
        return best


def _words(result: Result) -> str:
    if not result.violations:
        return ""
    last_line = result.violations[0].what.strip().rpartition("\n")[2]
    return _PARTICULARS.sub("#", last_line)
