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
from typing import Generic, Protocol, TypeAlias, TypeVar

Key: TypeAlias = tuple[str, str]
"""Namespace and name of a claim."""


class Named(Protocol):
    """A claim."""

    @property
    def uid(self) -> str: ...


class Chosen(Protocol):
    """Something chosen for a claim."""

    @property
    def claim_uid(self) -> str: ...

    @property
    def content(self) -> object:
        """The volume or the devices."""


Choice = TypeVar("Choice", bound=Chosen)


class ClaimLedger(ABC, Generic[Choice]):
    """The choices for all claims of one kind."""

    def __init__(self, named: Mapping[Key, Named]) -> None:
        """`named`: the claims in CLUSTER."""
        self._named = named
        self._choices: dict[Key, Choice] = {}
        self._pins: dict[Key, Choice] = {}

    # ------------------------------------------------------------------ of a kind

    @abstractmethod
    def is_current(self, key: Key, choice: Choice) -> bool:
        """Whether the claim for which it was chosen exists, and still needs it."""

    @abstractmethod
    def is_used(self, key: Key, pin: Choice) -> bool:
        """Whether a pod or reservation uses the claim where the pin applies."""

    @abstractmethod
    def applies(self, key: Key, pin: Choice, slot: int) -> bool:
        """Whether a pod on this node that uses the claim uses what was pinned for it."""

    @abstractmethod
    def hold(self, key: Key, choice: Choice) -> None:
        """Count what is chosen for a claim as taken."""

    @abstractmethod
    def release(self, key: Key, choice: Choice) -> None:
        """Undo `hold`."""

    @abstractmethod
    def holders(self, choice: Choice) -> list[Key]:
        """The claims that have what this choice needs alone."""

    # ---------------------------------------------------------------- transitions

    def find(self, key: Key) -> Choice | None:
        """What is chosen for the claim; None: nothing, or the claim needs it no more."""
        found = self._choices.get(key)
        return found if found is not None and self.is_current(key, found) else None

    def choose(self, key: Key, choice: Choice) -> None:
        """Choose something for a claim, in place of anything chosen before."""
        self.drop(key)
        self._choices[key] = choice
        self.hold(key, choice)

    def drop(self, key: Key) -> None:
        """End the choice for a claim, if there is one."""
        if (choice := self._choices.pop(key, None)) is not None:
            self.release(key, choice)

    def pin(self, key: Key, pin: Choice) -> None:
        """Restore what a decision in the log has chosen.

        It applies when the decision's reservation is made, or immediately if the claim is in use
        there. It replaces what the planner chose for a pod that another scheduler bound.
        """
        self.unpin(key)
        for other in self.holders(pin):
            self.end(other)
        if self.is_used(key, pin):
            self.choose(key, pin)
        else:
            self._pins[key] = pin
            self.hold(key, pin)

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
            self.release(key, pin)

    def take_up(self, keys: Iterable[Key], slot: int) -> None:
        """Make the pins of claims that a pod or reservation on this node uses choices. A pin for
        another node is of a later decision. Also if a claim is refused by now: a binder may carry
        out what a decision has chosen.
        """
        for key in [one for one in keys if one in self._pins]:
            claim, pin = self._named.get(key), self._pins[key]
            if claim is not None and claim.uid != pin.claim_uid:
                self.unpin(key)
            elif self.applies(key, pin, slot):
                self.unpin(key)
                self.choose(key, pin)

    def is_open(self, key: Key, claim_uid: str) -> bool:
        """Whether nothing is chosen for the claim, also by a later decision. What was chosen for an
        earlier claim of the name ends.
        """
        before = self._choices.get(key)
        if before is not None and before.claim_uid == claim_uid:
            return False
        self.drop(key)
        # With a pin, a later decision has chosen another node.
        return key not in self._pins

    def versions(self, keys: Iterable[Key]) -> tuple[Choice | None, ...]:
        """It changes with what is chosen for these claims."""
        return tuple([self._choices.get(key) for key in keys])
