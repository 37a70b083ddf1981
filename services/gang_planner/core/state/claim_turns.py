"""Numbers that change with the choices and users of claims, for results that were cached."""

from collections.abc import Container, Iterable
from typing import Final, TypeAlias

Key: TypeAlias = tuple[str, str]
"""Namespace and name of a claim."""

#: Up to this number of turns, those of claims that are gone are not looked for.
TURNS_MIN: Final = 4_096


class ClaimTurns:
    """The turn of each claim: a number that it never had before, each time that it moves."""

    def __init__(self) -> None:
        self._turns: dict[Key, int] = {}
        self._turn = 0
        #: More turns than this include those of claims that are gone, so that they are looked for.
        self._turns_max = TURNS_MIN

    def __len__(self) -> int:
        return len(self._turns)

    def copy(self) -> "ClaimTurns":
        other = ClaimTurns()
        other._turns, other._turn = dict(self._turns), self._turn
        other._turns_max = self._turns_max
        return other

    def of(self, keys: Iterable[Key]) -> tuple[int, ...]:
        """Each by itself: a forgotten turn and a later one might have an earlier sum."""
        return tuple([self._turns.get(key, 0) for key in keys])

    def move(self, keys: Iterable[Key], known: Iterable[Container[Key]]) -> None:
        """Give each of these claims its next turn. `known`: the claims that there are, that have a
        choice, and that are in use. Turns of others are forgotten: a result that was cached with
        such a turn has an older version of its claim, or is of a claim without choice and users, as
        it is now.
        """
        for key in keys:
            self._turn += 1
            self._turns[key] = self._turn
        if len(self._turns) > self._turns_max:
            places = list(known)
            self._turns = {
                one: turn
                for one, turn in self._turns.items()
                if any(one in place for place in places)
            }
            self._turns_max = max(TURNS_MIN, 2 * len(self._turns))
