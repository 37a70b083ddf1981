"""The past use of queues, and of the users of each queue, with a half-life.

The past use of an account is the average share of the cluster that it has held, where an instant
counts half as much as one that is a half-life later: while the share `h` is held for `dt`, the past
use `p` becomes `p * r + h * (1 - r)` with `r = 2 ** (-dt / half-life)`. Shares are constant between
two cycles, so this is the exact integral, and not a sample. Amounts are integers, also in between:
all machines compute the same.

An account is what the log has of it (`AccountUse`), and the amounts that its gangs hold now. The
log gets each change of its share with its instant (`lifecycle.use_accounting`), so a planner that
takes over continues it without a gap.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import isqrt
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from services.gang_planner.core.state.columns import add_amounts, dominant_share
from shared.contracts.decisions import AccountUse, UseCharged

if TYPE_CHECKING:
    from services.gang_planner.core.state.pod_shapes import ShapeEntry

AccountKey: TypeAlias = tuple[str, str | None]
"""(queue, user); user None: the queue itself."""

#: Of all users of a queue beyond the first `USERS_MAX`: they share one account.
OTHERS: Final = ""
#: Users of a queue with an account of their own: tenants may choose the names.
USERS_MAX: Final = 1_000
#: Past use in the log is in trillionths of the cluster, shares that are held are in millionths.
FINE: Final = 1_000_000
#: An account that holds nothing is dropped when it has used less than a millionth.
_NEGLIGIBLE: Final = FINE
#: What is held now counts as if it were held for this part of a half-life more. So accounts with
#: equal past use take turns in one cycle, and the first of them does not get everything.
_FORESEEN_PARTS: Final = 8
_BITS: Final = 62
_ONE: Final = 1 << _BITS
#: Binary digits of the part of a half-life.
_DIGITS: Final = 32


def _roots() -> Iterator[int]:
    """2 ** -(1/2), 2 ** -(1/4), 2 ** -(1/8), …, in units of 1 / `_ONE`."""
    root = _ONE >> 1
    for _ in range(_DIGITS):
        root = isqrt(root << _BITS)
        yield root


_ROOTS: Final = tuple(_roots())


@lru_cache(maxsize=4096)
def _remaining(lasts_ms: int, half_life_ms: int) -> int:
    """2 ** (-lasts / half-life), in units of 1 / `_ONE`."""
    halvings, rest = divmod(max(lasts_ms, 0), half_life_ms)
    if halvings >= _BITS:
        return 0
    digits = (rest << _DIGITS) // half_life_ms
    remaining = _ONE
    for place, root in enumerate(_ROOTS, start=1):
        if digits >> (_DIGITS - place) & 1:
            remaining = remaining * root >> _BITS
    return remaining >> halvings


def averaged(past: int, held: int, lasts_ms: int, half_life_ms: int) -> int:
    """The past use after a share was held for a time.

    Args:
        past: The past use before, in trillionths.
        held: The share, in millionths.
        lasts_ms: For how long it was held.
        half_life_ms: The half-life.
    """
    remaining = _remaining(lasts_ms, half_life_ms)
    return (past * remaining + held * FINE * (_ONE - remaining)) >> _BITS


def by_name(use: AccountUse) -> tuple[str, bool, str]:
    """The order of accounts in records: a queue before its users."""
    return use.queue, use.user is not None, use.user or ""


class UseRules(NamedTuple):
    """The arguments of the policy `past-use`."""

    half_life_ms: int
    #: The pods' label with the user's name; None: the namespace is the user.
    label: str | None


class Account:
    """A queue, or a user in it."""

    __slots__ = ("amounts", "key", "logged", "moved", "shared", "unwritten")

    def __init__(self, key: AccountKey) -> None:
        self.key = key
        #: Of a user: the amounts that gangs hold now, by resource row.
        self.amounts: dict[int, int] = {}
        #: Its newest record; None: none yet.
        self.logged: AccountUse | None = None
        #: Whether `logged` is new in this cycle, and not in the log yet.
        self.unwritten = False
        #: Whether `amounts` have changed since its share was last compared with the log.
        self.moved = True
        #: The account of all further users of the queue, if it is one of these.
        self.shared: Account | None = None

    def charge(self, shape: "ShapeEntry", count: int) -> None:
        """Charge `count` members (negative: uncharge)."""
        self.moved = True
        add_amounts(self.amounts, shape.pairs, count)
        if self.shared is not None:
            self.shared.charge(shape, count)

    def share_with(self, shared: "Account | None") -> None:
        """Charge what it holds to the account of all further users, too; None: no longer."""
        for account, sign in ((self.shared, -1), (shared, 1)):
            if account is not None:
                account.moved = True
                add_amounts(account.amounts, self.amounts.items(), sign)
        self.shared = shared

    @property
    def holds(self) -> bool:
        """Whether its gangs hold anything."""
        return any(self.amounts.values())


class PastUse:
    """All accounts."""

    def __init__(self) -> None:
        #: None: the policy is not configured.
        self.rules: UseRules | None = None
        self.accounts: dict[AccountKey, Account] = {}
        #: The instant of the cycle. It is not before the newest record of an account.
        self.now_ms = 0
        #: `NodeTable.changes.position` when shares were last compared with the log.
        self.totals_at: int | None = None

    def account(self, key: AccountKey) -> Account:
        """The account with this key."""
        account = self.accounts.get(key)
        if account is None:
            account = self.accounts[key] = Account(key)
        return account

    # ----------------------------------------------------------------- the log

    def apply(self, record: UseCharged) -> None:
        """Apply a record of another planner."""
        self.recall(record.accounts)
        for key in record.forgotten:
            self.forget(key)

    def recall(self, uses: Iterable[AccountUse]) -> None:
        """Set accounts as the log or a checkpoint has them."""
        for use in uses:
            account = self.account((use.queue, use.user))
            account.logged = use
            account.moved = True

    def forget(self, key: AccountKey) -> None:
        """Drop what the log has of an account. Gangs may still hold something of it."""
        account = self.accounts.get(key)
        if account is not None:
            account.logged = None
            if not account.holds:
                del self.accounts[key]

    def logged(self) -> list[AccountUse]:
        """What the log has, in any order."""
        return [each.logged for each in self.accounts.values() if each.logged is not None]

    def users_of(self, queue: str) -> list[Account]:
        """The accounts of a queue's users that the log has."""
        return [
            each
            for (name, user), each in self.accounts.items()
            if name == queue and user is not None and each.logged is not None
        ]

    # ------------------------------------------------------------------- values

    def past(self, account: Account) -> int:
        """The past use of a logged account now, in trillionths."""
        use, rules = account.logged, self.rules
        if use is None or rules is None:
            return 0
        return averaged(use.past, use.held, self.now_ms - use.at_ms, rules.half_life_ms)

    def expires(self, use: AccountUse) -> bool:
        """Whether an account that holds nothing has nothing left that counts."""
        if not use.used or self.rules is None:
            return True
        halvings = (use.past // _NEGLIGIBLE).bit_length()
        return self.now_ms >= use.at_ms + halvings * self.rules.half_life_ms

    def mean(self, accounts: Iterable[Account], weights: Mapping[str, int] | None = None) -> int:
        """The mean past use, in trillionths: that of a newcomer; with weights of queues for each
        unit of weight.
        """
        pasts = [
            self.past(each) // (weights[each.key[0]] if weights is not None else 1)
            for each in accounts
        ]
        return sum(pasts) // len(pasts) if pasts else 0

    def rank(self, past: int, amounts: Mapping[int, int], totals: Sequence[int]) -> int:
        """The past use with what is held now, in millionths of the cluster."""
        if self.rules is None:
            return 0
        half_life_ms = self.rules.half_life_ms
        held = dominant_share(amounts, totals)
        return averaged(past, held, half_life_ms // _FORESEEN_PARTS, half_life_ms) // FINE

    def user_rank(self, account: Account, totals: Sequence[int]) -> int:
        """The rank of a user among those of its queue: the smallest has the next turn."""
        counted = account
        if account.logged is None and account.shared is not None:
            counted = account.shared
        if counted.logged is None:
            mean = self.mean(self.users_of(account.key[0]))
            return self.rank(mean, account.amounts, totals)
        return self.rank(self.past(counted), counted.amounts, totals)
