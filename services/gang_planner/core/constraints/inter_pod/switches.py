"""What a configuration judges and prefers of terms between pods."""

from typing import Final, NamedTuple


class Switches(NamedTuple):
    """Weights of 0 prefer nothing."""

    #: Required affinity and anti-affinity keep pods off nodes.
    affinity: bool = False
    #: Spread constraints do.
    spread: bool = False
    affinity_weight: int = 0
    spread_weight: int = 0

    def without(self, *, judging: bool, preferring: bool) -> "Switches":
        """The same with one half switched off."""
        return Switches(
            affinity=self.affinity and not judging,
            spread=self.spread and not judging,
            affinity_weight=0 if preferring else self.affinity_weight,
            spread_weight=0 if preferring else self.spread_weight,
        )


NOTHING: Final = Switches()
