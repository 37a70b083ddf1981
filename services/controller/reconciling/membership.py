"""Which replica acts on which key, among replicas that read each other's heartbeats. Pure.

Every replica says regularly that it lives, and under which *view* it acts: the members among which
keys are divided. A key's owner is drawn from the view by a hash, so a member that comes or goes
moves only its own keys.

    a change of the living ──▶ target: give up what is not ours in it, at once
      nothing given up is worked at any more ──▶ say that we act under the target
        every living member says the same ──▶ agreed: act on what is ours in it

Until it is agreed, only keys that are ours in the old view and in the new one are acted on: so no
key has two owners. A member that falls silent is taken for dead after a while, by our own clock;
it has stopped acting by then, because it could not say that it lives.
"""

import zlib
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

View: TypeAlias = tuple[str, ...]


class Word(msgspec.Struct, frozen=True):
    """What a member said last: its view, and something that changes each time it says it."""

    view: View
    beat: str


def owner(view: View, key: str) -> str:
    """The member of a view that acts on a key; "" when there is none."""
    return max(view, key=lambda one: (zlib.crc32(f"{one}/{key}".encode()), one), default="")


class Membership:
    """One replica's view of the other replicas. All instants are in its own monotonic seconds."""

    def __init__(self, me: str, *, expire_s: float) -> None:
        """Alone, and acting on nothing yet.

        Args:
            me: This replica's name, unique among the living.
            expire_s: A member silent for so long is dead; we stop acting a little sooner.
        """
        self.me = me
        self._expire_s = expire_s
        #: Acted under so far; () before anything was agreed.
        self.view: View = ()
        self.target: View = ()
        #: What we say of ourselves.
        self.said: View = ()
        self._agreed = False
        self._heard: dict[str, tuple[str, float]] = {}
        self._renewed_s: float | None = None

    def renewed(self, asked_s: float, now_s: float) -> None:
        """Our own word was taken: no sooner than it was sent, at `asked_s`.

        After a silence in which the other replicas may have divided our keys, nothing is ours any
        more. (A slow answer may be what made the silence: so it is judged by the instant at which
        it came, and what was passed over meanwhile is gained again.)
        """
        if not self._spoke_lately(now_s):
            self.view, self._agreed = (), False
        self._renewed_s = asked_s

    def _spoke_lately(self, now_s: float) -> bool:
        patience_s = self._expire_s * 0.7
        return self._renewed_s is not None and now_s - self._renewed_s <= patience_s

    def hear(self, words: Mapping[str, Word], at_work: Iterable[str], now_s: float) -> bool:
        """Take in what all members said last.

        Args:
            words: By member, ourselves included or not.
            at_work: Keys that we are working at.
            now_s: The instant.

        Returns:
            Whether keys have become ours.
        """
        for member, word in words.items():
            known = self._heard.get(member)
            if known is None or known[0] != word.beat:
                self._heard[member] = (word.beat, now_s)
        for member in [one for one in self._heard if one not in words]:
            del self._heard[member]
        living = {
            member
            for member, (_, heard_s) in self._heard.items()
            if now_s - heard_s < self._expire_s
        }
        target = tuple(sorted(living | {self.me}))
        if target != self.target:
            self.target, self._agreed = target, False
        if all(owner(target, key) == self.me for key in at_work):
            self.said = target
        if self._agreed or self.said != target:
            return False
        if any(words[one].view != target for one in target if one != self.me):
            return False
        self.view, self._agreed = target, True
        return True

    def silent(self, now_s: float, for_s: float) -> list[str]:
        """Members that have not said anything for so long; ourselves not."""
        return [
            member
            for member, (_, heard_s) in self._heard.items()
            if now_s - heard_s >= for_s and member != self.me
        ]

    def owns(self, key: str, now_s: float) -> bool:
        """Whether this replica may act on the key now."""
        if not self._spoke_lately(now_s):
            return False
        if owner(self.target, key) != self.me:
            return False
        return self._agreed or owner(self.view, key) == self.me
