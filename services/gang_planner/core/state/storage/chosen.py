"""Volumes that are chosen for claims but not bound yet, and the remaining candidates of a list.

A gang with a thousand claims chooses a thousand times from the same list. Therefore the remaining
candidates of a list are cached and updated incrementally.
"""

from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.storage.available_volumes import VolumeCandidates
from services.gang_planner.core.state.storage.demand import Key

#: Number of lists with cached candidates, and length of the log of changes.
_KEPT_MAX = 256
_LOG_MAX = 8192
#: Lists up to this length are not cached.
_SHORT = 4


class Chosen:
    """Volume by UID -> the claim that it is chosen for."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}
        self._log: list[str] = []
        #: id of the list -> (the list, kept alive; position in the log; flags of free volumes).
        self._rests: dict[int, tuple[VolumeCandidates, int, Bools]] = {}

    def copy(self) -> "Chosen":
        """An independent copy of the table."""
        other = Chosen()
        other._keys = dict(self._keys)
        return other

    def __contains__(self, uid: str) -> bool:
        return uid in self._keys

    def claim(self, uid: str) -> Key | None:
        """The claim for which a volume is chosen; None: none."""
        return self._keys.get(uid)

    def uids(self) -> list[str]:
        """UIDs of all chosen volumes, sorted."""
        return sorted(self._keys)

    def put(self, uid: str, key: Key) -> None:
        """Mark a volume as chosen; no-op for "", a volume to be provisioned for the claim."""
        if uid:
            self._keys[uid] = key
            self._note(uid)

    def drop(self, uid: str) -> None:
        """Mark a volume as not chosen."""
        if self._keys.pop(uid, None) is not None:
            self._note(uid)

    def free(self, candidates: VolumeCandidates) -> Bools:
        """One flag per volume of the list: whether it is not chosen. Read-only."""
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
