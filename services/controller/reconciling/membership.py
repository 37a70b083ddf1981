"""The division of keys among replicas that read each other's heartbeats. Pure.

A replica's heartbeat contains its *view*: the members among which it divides keys. A key's owner is
chosen from the view by rendezvous hashing, so that a member that joins or leaves moves only its own
keys.

    the live members change ──▶ target: give up keys of other members at once
      no such key is being handled any more ──▶ announce the target as our view
        all live members announce the same view ──▶ agreed: act on all our keys in it

Until then a replica acts only on keys that it owns in both the old view and the target, so no key
has two owners. A silent member counts as dead after a timeout by our own clock. By then it has
stopped acting, because its heartbeats failed.
"""

import zlib
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

View: TypeAlias = tuple[str, ...]


class Heartbeat(msgspec.Struct, frozen=True):
    """A member's last heartbeat: its view, and a text that differs in each heartbeat."""

    view: View
    beat: str


def owner(view: View, key: str) -> str:
    """The member of a view that acts on a key; "" for an empty view."""
    return max(
        view, key=lambda member: (zlib.crc32(f"{member}/{key}".encode()), member), default=""
    )


class Membership:
    """One replica's state of the protocol. Instants are seconds of its own monotonic clock."""

    def __init__(self, me: str, *, expire_s: float) -> None:
        """Know no other member, and own no key.

        Args:
            me: This replica's name, unique among live members.
            expire_s: Seconds of silence after which a member counts as dead. This replica stops
                acting a little sooner when its own heartbeats fail.
        """
        self.me = me
        self._expire_s = expire_s
        #: The last agreed view; () before the first.
        self.view: View = ()
        self.target: View = ()
        #: The view in our heartbeats.
        self.announced: View = ()
        self._agreed = False
        self._heard: dict[str, tuple[str, float]] = {}
        self._renewed_s: float | None = None

    def renewed(self, sent_s: float, now_s: float) -> None:
        """Note a heartbeat of ours, sent at `sent_s` and acknowledged at `now_s`.

        After a silence in which the other replicas may have divided our keys, we own no key until
        the next agreement. The silence is measured until the acknowledgement, since a slow answer
        may be its cause.
        """
        if not self._is_heard(now_s):
            self.view, self._agreed = (), False
        self._renewed_s = sent_s

    def _is_heard(self, now_s: float) -> bool:
        limit_s = self._expire_s * 0.7
        return self._renewed_s is not None and now_s - self._renewed_s <= limit_s

    def observe(
        self, heartbeats: Mapping[str, Heartbeat], at_work: Iterable[str], now_s: float
    ) -> bool:
        """Apply the last heartbeat of each member.

        Args:
            heartbeats: By member; our own may be among them.
            at_work: Keys that this replica is handling.
            now_s: The instant.

        Returns:
            Whether this replica has gained keys.
        """
        for member, heartbeat in heartbeats.items():
            known = self._heard.get(member)
            if known is None or known[0] != heartbeat.beat:
                self._heard[member] = (heartbeat.beat, now_s)
        for member in [known for known in self._heard if known not in heartbeats]:
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
            self.announced = target
        if self._agreed or self.announced != target:
            return False
        if any(heartbeats[member].view != target for member in target if member != self.me):
            return False
        self.view, self._agreed = target, True
        return True

    def silent(self, now_s: float, for_s: float) -> list[str]:
        """Other members without a heartbeat for `for_s` seconds."""
        return [
            member
            for member, (_, heard_s) in self._heard.items()
            if now_s - heard_s >= for_s and member != self.me
        ]

    def owns(self, key: str, now_s: float) -> bool:
        """Whether this replica may act on the key now."""
        if not self._is_heard(now_s):
            return False
        if owner(self.target, key) != self.me:
            return False
        return self._agreed or owner(self.view, key) == self.me
