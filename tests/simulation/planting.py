"""What a planted bug is: what it replaces, and which checker must find it how soon."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from tests.simulation.claims import ClaimShape

#: The first seed of the range in which planted bugs are searched.
FIRST_SEED: Final = 100

Replaced = Sequence[tuple[Any, str, Any]]


class Canary(msgspec.Struct, frozen=True):
    """One planted bug."""

    #: What is replaced, and by what.
    plant: Callable[[], Replaced]
    #: A checker must see it within so many seeds.
    seeds: int
    #: Words of which one must be in what the checker says.
    caught_by: tuple[str, ...]
    #: Words of checkers that would see it earlier, and are not meant here.
    overlook: tuple[str, ...] = ()
    #: Where `make test` begins: the seed that caught it when it was tried last. `make certify`
    #: begins at the first of the range, whatever the bug.
    first: int = FIRST_SEED
    #: Gangs ask for volumes and devices like this in all its seeds; None: as the seed says.
    claims: ClaimShape | None = None
    #: A user of another namespace is hostile in all its seeds, or in none.
    tenant: bool = False

    def is_caught_by(self, what: str) -> bool:
        """Whether a broken promise is the one that this bug breaks."""
        return any(words in what for words in self.caught_by)
