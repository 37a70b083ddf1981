"""The nearest known name for a name that does not exist: `(did you mean "…"?)`."""

import difflib
from collections.abc import Iterable
from typing import Final

#: Below this likeness no name is suggested.
_LIKENESS: Final = 0.6
#: Nothing is suggested out of more names than these: each comparison takes microseconds.
_NAMES_MAX: Final = 500
#: Suggestions for one object: its author reads a few and corrects the rest alike.
_HINTS_MAX: Final = 10


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean "…"?)`, or "" when no known name resembles the word."""
    names = sorted(known)
    if not word or len(word) > 100 or len(names) > _NAMES_MAX:
        return ""
    by_folded = {name.casefold(): name for name in reversed(names)}
    near = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=_LIKENESS)
    return f' (did you mean "{by_folded[near[0]]}"?)' if near else ""


def one_typing_error_apart(name: str, other: str) -> bool:
    """Whether two names differ by one letter that is added, missing or replaced, or by two
    neighbouring letters that are swapped. Digits distinguish things of one kind, so a different
    digit is no typing error.
    """
    if abs(len(name) - len(other)) > 1:
        return False
    start = _common_length(name, other)
    end = _common_length(name[start:][::-1], other[start:][::-1])
    left, right = name[start : len(name) - end], other[start : len(other) - end]
    if left == right or any(letter.isdigit() for letter in left + right):
        return False
    return max(len(left), len(right)) == 1 or (len(left) == 2 and left == right[::-1])


def _common_length(name: str, other: str) -> int:
    """The number of letters with which both begin."""
    shorter = min(len(name), len(other))
    return next((at for at in range(shorter) if name[at] != other[at]), shorter)


class Hints:
    """`did_you_mean` for one object, limited to its first few wrong words: an object may have a
    hundred thousand, and each is compared with all known names.
    """

    def __init__(self) -> None:
        self._left = _HINTS_MAX

    def near(self, word: str, known: Iterable[str]) -> str:
        """As `did_you_mean`; "" once the limit is reached."""
        if not self._left:
            return ""
        self._left -= 1
        return did_you_mean(word, known)
