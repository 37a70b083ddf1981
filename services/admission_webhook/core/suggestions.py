"""Did you mean …? For words that must be one of a few known ones."""

import difflib
from collections.abc import Iterable
from typing import Final

#: Below that likeness a word was meant as it was written.
_LIKENESS: Final = 0.6
#: Of more names than these the nearest is not suggested: comparing takes microseconds each.
_NAMES_MAX: Final = 500
#: Of an object, whose author reads a few and mends the rest alike.
_HINTS_MAX: Final = 10


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean "…"?)`, or "" when nothing known is like it."""
    names = sorted(known)
    if not word or len(word) > 100 or len(names) > _NAMES_MAX:
        return ""
    by_folded = {name.casefold(): name for name in reversed(names)}
    near = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=_LIKENESS)
    return f' (did you mean "{by_folded[near[0]]}"?)' if near else ""


class Hints:
    """`did_you_mean` for one object, of whose wrong words only the first few get a hint: an object
    may hold a hundred thousand, and each is compared with all that are known.
    """

    def __init__(self) -> None:
        self._left = _HINTS_MAX

    def near(self, word: str, known: Iterable[str]) -> str:
        """As `did_you_mean`; "" once there were enough."""
        if not self._left:
            return ""
        self._left -= 1
        return did_you_mean(word, known)
