"""Which gangs are tried again after the API server has refused their group object.

No verdict follows when the cause is gone, such as a quota, so the verdict is delivered again. Such
verdicts take a part of what the consumer may have in flight: their number is bounded, in all and
for each namespace.
"""

from typing import Final

#: When a refused gang is tried again, in seconds.
RETRY_S: Final = 30.0
GANGS_MAX: Final = 100
GANGS_OF_NAMESPACE_MAX: Final = 20


class RefusedGangs:
    """The refused gangs that are tried again."""

    def __init__(self) -> None:
        #: When each was refused last, by namespace and id.
        self._refused_s: dict[tuple[str, str], float] = {}

    def is_tried_again(self, namespace: str, gang_id: str, now_s: float) -> bool:
        """Whether a gang that is refused now is one of them. A gang that was not refused again for
        two turns is none of them any more.
        """
        known = self._refused_s.items()
        self._refused_s = {one: at_s for one, at_s in known if now_s - at_s < 2 * RETRY_S}
        if (namespace, gang_id) not in self._refused_s:
            own = sum(place == namespace for place, _ in self._refused_s)
            if own >= GANGS_OF_NAMESPACE_MAX or len(self._refused_s) >= GANGS_MAX:
                return False
        self._refused_s[namespace, gang_id] = now_s
        return True
