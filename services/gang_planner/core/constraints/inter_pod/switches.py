"""Which inter-pod rules and preferences a configuration enables."""

from typing import Final, NamedTuple


class Switches(NamedTuple):
    """Enabled rules, and weights of preferences; the weight 0 disables one."""

    #: Required affinity and anti-affinity exclude nodes.
    affinity: bool = False
    #: Required spread constraints exclude nodes.
    spread: bool = False
    affinity_weight: int = 0
    spread_weight: int = 0

    def without(self, *, judging: bool, preferring: bool) -> "Switches":
        """A copy with the rules (`judging`) or the preferences (`preferring`) disabled."""
        return Switches(
            affinity=self.affinity and not judging,
            spread=self.spread and not judging,
            affinity_weight=0 if preferring else self.affinity_weight,
            spread_weight=0 if preferring else self.spread_weight,
        )


NOTHING: Final = Switches()
