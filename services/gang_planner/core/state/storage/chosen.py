"""Volumes chosen for claims that do not have them yet, and what that leaves of a list.

A gang of a thousand claims chooses a thousand times from one list: what is left of it is kept, and
repaired by what changed since.
"""

from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.storage.available_volumes import VolumeCandidates
from services.gang_planner.core.state.storage.demand import Key

#: Lists whose rest is kept, and changes that are remembered for them.
_KEPT_MAX = 256
_LOG_MAX = 8192
#: Shorter lists are looked through each time.
_SHORT = 4


class Chosen:
    """Volume by UID -> the claim that it is chosen for."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}
        self._log: list[str] = []
        #: By identity of the list, which is kept alive here: up to where the log is in its rest.
        self._rests: dict[int, tuple[VolumeCandidates, int, Bools]] = {}

    def copy(self) -> "Chosen":
        """An independent table with the same content."""
        other = Chosen()
        other._keys = dict(self._keys)
        return other

    def __contains__(self, uid: str) -> bool:
        return uid in self._keys

    def claim(self, uid: str) -> Key | None:
        """The claim that a volume is chosen for."""
        return self._keys.get(uid)

    def uids(self) -> list[str]:
        """All volumes chosen, sorted."""
        return sorted(self._keys)

    def put(self, uid: str, key: Key) -> None:
        """A volume is chosen; "": one that is made, which no other claim can have."""
        if uid:
            self._keys[uid] = key
            self._note(uid)

    def drop(self, uid: str) -> None:
        """A volume is not chosen any more."""
        if self._keys.pop(uid, None) is not None:
            self._note(uid)

    def free(self, candidates: VolumeCandidates) -> Bools:
        """One flag per volume of the list: no decision has chosen it. Not to be written to."""
        if len(candidates.volumes) <= _SHORT:
            return candidates.without(self._keys)
        found = self._rests.get(id(candidates))
        if found is None:
            if len(self._rests) >= _KEPT_MAX:
                self._rests.clear()
            free = candidates.without(self._keys)
        else:
            _, position, free = found
            for uid in self._log[position:]:
                place = candidates.place(uid)
                if place is not None:
                    free[place] = uid not in self._keys
        self._rests[id(candidates)] = (candidates, len(self._log), free)
        return free

    def _note(self, uid: str) -> None:
        self._log.append(uid)
        if len(self._log) > _LOG_MAX:
            self._log.clear()
            self._rests.clear()
