"""What is chosen for claims together with a node: volumes (`storage.ledger`) and devices
(`devices.grants`). Both have the same life.

| state | begins | ends |
| --- | --- | --- |
| pinned | `pin`: a logged decision has it | `take_up`; `unpin` when its reservations are made |
| chosen | `choose`, `take_up`: the claim is in use | `drop`: no pod uses it, or CLUSTER shows it |

A claim that is bound or has devices in CLUSTER needs no choice: `find` returns none.

Invariant: nothing is chosen or pinned for two claims, unless they can share it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, Self, TypeAlias, TypeVar

from shared.model.devices import ResourceClaim
from shared.model.reference_objects import Claim

Key: TypeAlias = tuple[str, str]
"""Namespace and name of a claim."""


class Chosen(Protocol):
    """Something chosen for a claim."""

    @property
    def claim_uid(self) -> str: ...

    @property
    def content(self) -> object:
        """The volume or the devices."""


Choice = TypeVar("Choice", bound=Chosen)
#: A volume or a device.
Unit = TypeVar("Unit", str, tuple[str, str, str])


class ClaimLedger(ABC, Generic[Choice, Unit]):
    """The choices for all claims of one kind, and the users of these claims."""

    def __init__(self, named: Mapping[Key, Claim | ResourceClaim]) -> None:
        """`named`: the claims in CLUSTER."""
        self._named = named
        #: Claim -> slot -> number of pods on the node, and of reservations, that use it.
        self.uses: dict[Key, dict[int, int]] = {}
        self._choices: dict[Key, Choice] = {}
        self._pins: dict[Key, Choice] = {}
        #: What the claims with choices and pins have alone.
        self.holders: dict[Unit, Key] = {}

    def take_over(self, other: Self) -> None:
        """Have the same content as another ledger; this one is new."""
        self.uses = {key: dict(slots) for key, slots in other.uses.items()}
        self._choices, self._pins = dict(other._choices), dict(other._pins)
        self.holders = dict(other.holders)

    # ------------------------------------------------------------------ of a kind

    @abstractmethod
    def is_current(self, key: Key, choice: Choice) -> bool:
        """Whether the claim for which it was chosen exists, and still needs it."""

    @abstractmethod
    def applies(self, key: Key, pin: Choice, slot: int) -> bool:
        """Whether a pod on this node that uses the claim uses what was pinned for it."""

    @abstractmethod
    def units(self, choice: Choice) -> list[Unit]:
        """What the claim has alone."""

    @abstractmethod
    def touch(self, choice: Choice) -> None:
        """Note that what was chosen is no longer available, or is again."""

    # ---------------------------------------------------------------- transitions

    def find(self, key: Key) -> Choice | None:
        """What is chosen for the claim; None: nothing, or the claim needs it no more."""
        choice = self._choices.get(key)
        return choice if choice is not None and self.is_current(key, choice) else None

    def add_users(self, keys: Iterable[Key], slot: int, count: int) -> None:
        """Pods or reservations on a node use these claims."""
        for key in keys:
            users = self.uses.setdefault(key, {})
            users[slot] = users.get(slot, 0) + count

    def remove_users(self, keys: Iterable[Key], slot: int, count: int) -> None:
        """Undo `add_users`; choices for claims that are not in use any more end."""
        for key in keys:
            users = self.uses[key]
            users[slot] -= count
            if not users[slot]:
                del users[slot]
            if not users:
                del self.uses[key]
                self.fall_free(key)

    def fall_free(self, key: Key) -> None:
        """The claim is not in use any more."""
        self.drop(key)

    def choose(self, key: Key, choice: Choice) -> None:
        """Choose something for a claim, in place of anything chosen before."""
        self.drop(key)
        self._choices[key] = choice
        self._hold(key, choice)

    def drop(self, key: Key) -> None:
        """End the choice for a claim, if there is one."""
        if (choice := self._choices.pop(key, None)) is not None:
            self._release(key, choice)

    def pin(self, key: Key, pin: Choice) -> None:
        """Restore what a decision in the log has chosen.

        It applies when the decision's reservation is made, or immediately if the claim is in use
        there. It replaces what the planner chose for a pod that another scheduler bound.
        """
        self.unpin(key)
        for unit in self.units(pin):
            if (other := self.holders.get(unit)) is not None:
                self.end(other)
        if any(self.applies(key, pin, slot) for slot in self.uses.get(key, ())):
            self.choose(key, pin)
        else:
            self._pins[key] = pin
            self._hold(key, pin)

    def end(self, key: Key) -> None:
        """Forget what is chosen for a claim, because the log says something else."""
        self.drop(key)
        self.unpin(key)

    def unpin(self, key: Key, only: Choice | None = None) -> None:
        """Drop the pin of a claim that no pod will use; `only`: unless a newer decision has
        replaced this one.
        """
        pin = self._pins.get(key)
        if pin is not None and (only is None or only.content == pin.content):
            del self._pins[key]
            self._release(key, pin)

    def take_up(self, keys: Iterable[Key], slot: int) -> None:
        """Make the pins of claims that a pod or reservation on this node uses choices. A pin for
        another node is of a later decision. Also if a claim is refused by now: a binder may carry
        out what a decision has chosen.
        """
        for key in [key for key in keys if key in self._pins]:
            claim, pin = self._named.get(key), self._pins[key]
            if claim is not None and claim.uid != pin.claim_uid:
                self.unpin(key)
            elif self.applies(key, pin, slot):
                self.unpin(key)
                self.choose(key, pin)

    def is_open(self, key: Key, claim_uid: str) -> bool:
        """Whether nothing is chosen for the claim, also by a later decision for another node. What
        was chosen for an earlier claim of the name ends.
        """
        before = self._choices.get(key)
        if before is not None and before.claim_uid == claim_uid:
            return False
        self.drop(key)
        return key not in self._pins

    def versions(self, keys: Iterable[Key]) -> tuple[Choice | None, ...]:
        """It changes with what is chosen for these claims."""
        return tuple([self._choices.get(key) for key in keys])

    def contradiction(self) -> str:
        """The first inconsistency, such as something that is chosen twice; "": none."""
        chosen = [*self._choices.items(), *self._pins.items()]
        held = sorted((unit, key) for key, choice in chosen for unit in self.units(choice))
        counted = sorted(self.holders.items())
        return "" if held == counted else f"{held} are chosen, {counted} count as such"

    def _hold(self, key: Key, choice: Choice) -> None:
        for unit in self.units(choice):
            self.holders[unit] = key
        self.touch(choice)

    def _release(self, key: Key, choice: Choice) -> None:
        for unit in self.units(choice):
            if self.holders.get(unit) == key:
                del self.holders[unit]
        self.touch(choice)
