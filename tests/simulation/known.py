"""Seeds of the range that break a promise on this very commit, and why they still may.

A seed means another run after any change that draws differently, so this table is for one commit:
the test fails when a seed breaks that is not in it, and when one in it does not break any more.
"""

from typing import Final

#: The range: `SEEDS` seeds from `FIRST` on, about forty gangs each.
FIRST: Final = 1
SEEDS: Final = 510
#: So many of them play in `make test`, three of them with claims; all play in `make certify`. One
#: takes a second and a half of CPU.
SEEDS_EACH_TIME: Final = 20

#: Seeds from the first on in which claims request everything of devices, and how many of them play
#: in `make certify` and in `make test`. One takes ten seconds of CPU.
FIRST_OF_FEATURES: Final = 1001
SEEDS_OF_FEATURES: Final = 34
SEEDS_OF_FEATURES_EACH_TIME: Final = 1

#: As `BROKEN`, of those seeds.
BROKEN_WITH_FEATURES: Final[dict[int, str]] = {}

#: What allocations of those seeds must show, each at least once in `make certify`.
FEATURES: Final = (
    "matchAttribute",
    "distinctAttribute",
    "alternative 1",
    "alternative 2",
    "alternative 3",
    "partition of 1",
    "partition of 2",
    "partition of 4",
    "beside a partition of the same GPU",
    "consumed capacity",
)

#: Seed -> what is known of it.
BROKEN: Final[dict[int, str]] = {}

#: Pairs of fault and state that chance does not bring together in this range.
UNMET: Final[frozenset[tuple[str, str]]] = frozenset()
