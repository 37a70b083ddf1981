"""Records the past use of queues and users (`state.past_use`) in the log.

An account is opened when its queue or user first waits or holds something. It begins with the mean
of the accounts beside it that wait or hold something then: a newcomer has no advantage and no
disadvantage, and a new name is no advantage either. Whenever the share that an account holds has
changed, the log gets its past use up to this cycle, and its share from there on. What ended while
no planner was active is charged up to the first cycle of the next one.

Everything here follows from the state and the cycle's time. A cycle that changes an account writes
a record, so a replay runs it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from services.gang_planner.core.state.backlog import AdmissionQueue, Backlog
from services.gang_planner.core.state.columns import dominant_share
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.past_use import (
    OTHERS,
    USERS_MAX,
    Account,
    AccountKey,
    PastUse,
    by_name,
)
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import QueueEntry, QueueTable
from shared.contracts.decisions import AccountUse, UseCharged
from shared.model.objects import Labels

#: If the clock was set back by less than this, use is charged again once it has passed the newest
#: record. By more: all accounts go on from the new time.
_CLOCK_STEP_MS: Final = 60_000
#: Accounts in one record, so that it fits into a message.
PER_RECORD_MAX: Final = 500


_labels: Final = msgspec.msgpack.Decoder(Labels).decode


def attribute(use: PastUse, gang: Gang, shapes: Sequence[ShapeEntry]) -> None:
    """Charge the gang to the account of its user from now on; `shapes` are all, by id."""
    key = gang.queue.name, _user_of(gang, use.rules.label if use.rules is not None else None)
    before = gang.account
    if before is not None and before.key == key and use.accounts.get(key) is before:
        return
    gang.account = after = use.account(key)
    for shape_id, count in gang.held.items():
        if before is not None:
            before.charge(shapes[shape_id], -count)
        after.charge(shapes[shape_id], count)


def _user_of(gang: Gang, label: str | None) -> str:
    """The user of a gang: of several labels the first one; without any, its namespace."""
    if label is None:
        return gang.namespace
    written = {member.pod.labels for member in gang.members.values()}
    users = (user for labels in written if (user := _value(labels, label)))
    # A label's value has no space.
    return min(users, default=f"namespace {gang.namespace}")


@lru_cache(maxsize=4096)
def _value(labels: bytes, key: str) -> str:
    """The value of a label of a pod; "": it has none."""
    return dict(_labels(labels)).get(key, "") if labels else ""


def waiting_users(backlog: Backlog, admission_queue: AdmissionQueue) -> set[AccountKey]:
    """The users whose gangs wait for capacity or for admission."""
    waiting = set(backlog.users)
    for bucket in admission_queue.buckets.values():
        account = bucket.entries[0][2].account
        if account is not None:
            waiting.add(account.key)
    return waiting


def open_accounts(
    use: PastUse, queues: QueueTable, waiting: Collection[AccountKey], now_ms: int
) -> None:
    """Open the accounts of queues and users that wait or hold something and have none yet, before
    any gang is placed.
    """
    if use.rules is None:
        return
    _set_clock(use, now_ms)
    accounts = use.accounts
    present = {key for key in waiting if key in accounts}
    present |= {key for key, each in accounts.items() if key[1] is not None and each.holds}
    _open_users(use, queues, present)
    _open_queues(use, queues, {queue for queue, _ in present})


def records(
    use: PastUse, queues: QueueTable, nodes: NodeTable, waiting: Collection[AccountKey]
) -> Iterator[UseCharged]:
    """Records of all that has changed since the last ones, without their cycle. Accounts that no
    longer count are dropped.
    """
    changed: list[AccountUse] = []
    forgotten: list[AccountKey] = []
    if use.rules is None:
        forgotten += [key for key, each in use.accounts.items() if each.logged is not None]
        use.accounts.clear()
        return _pages(changed, forgotten)
    totals, totals_at = nodes.totals(), nodes.changes.position
    counted = _counted(use.accounts, queues, waiting)
    for key, account in list(use.accounts.items()):
        logged = account.logged
        if logged is None:
            if key not in counted:
                account.share_with(None)
                del use.accounts[key]
            continue
        held = logged.held
        if account.moved or key[1] is None or use.totals_at != totals_at:
            account.moved = False
            held = dominant_share(_amounts(queues, account), totals)
        if held != logged.held or account.unwritten:
            account.unwritten = False
            account.logged = _now(use, account, logged, held)
            changed.append(account.logged)
        elif key not in counted and use.expires(logged):
            forgotten.append(key)
    use.totals_at = totals_at
    for key in forgotten:
        use.forget(key)
    return _pages(changed, forgotten)


def _set_clock(use: PastUse, now_ms: int) -> None:
    """Set the instant of the cycle, which is not before the newest record of an account."""
    newest_ms = max((logged.at_ms for logged in use.logged()), default=now_ms)
    use.now_ms = max(now_ms, newest_ms)
    if now_ms < newest_ms - _CLOCK_STEP_MS:
        for account in use.accounts.values():
            if account.logged is not None:
                past = use.past(account)
                account.logged = msgspec.structs.replace(account.logged, at_ms=now_ms, past=past)
                account.unwritten = True
        use.now_ms = now_ms


def _counted(
    accounts: Mapping[AccountKey, Account], queues: QueueTable, waiting: Collection[AccountKey]
) -> set[AccountKey]:
    """The accounts of queues and users that wait or hold something, and those that they share."""
    counted = {
        key
        for key, each in accounts.items()
        if key[1] is not None and (key in waiting or each.holds)
    }
    for key in list(counted):
        shared = accounts[key].shared
        if shared is not None:
            counted.add(shared.key)
        entry = queues.entries.get(key[0])
        if entry is not None:
            counted.update((above.name, None) for above in entry.chain)
    return counted


def _open_users(use: PastUse, queues: QueueTable, present: Collection[AccountKey]) -> None:
    """Open accounts of these users, in the order of their names, as many as a queue may have; all
    further ones share one.
    """
    new: dict[str, list[Account]] = {}
    for key in sorted(present, key=_user_last):
        account, entry = use.accounts[key], queues.entries.get(key[0])
        # Queues without an object have no turns: users choose the names.
        if account.logged is None and entry is not None and entry.queue is not None:
            new.setdefault(key[0], []).append(account)
    for queue, accounts in new.items():
        known = use.users_of(queue)
        active = [each for each in known if each.key in present]
        begins = use.mean(active or known)
        left = max(USERS_MAX - sum(each.key[1] != OTHERS for each in known), 0)
        for account in accounts[:left]:
            account.share_with(None)
            _open(use, account, begins)
        for account in accounts[left:]:
            shared = use.account((queue, OTHERS))
            if shared.logged is None:
                _open(use, shared, begins)
            if account.shared is not shared:
                account.share_with(shared)


def _open_queues(use: PastUse, queues: QueueTable, names: Iterable[str]) -> None:
    """Open the accounts of these queues and those above them; queues are compared by weight."""
    entries = queues.entries
    present: dict[str, QueueEntry] = {}
    for name in sorted(names):
        if name in entries:
            present.update((above.name, above) for above in entries[name].chain)
    new = [
        entry
        for name, entry in sorted(present.items())
        if entry.queue is not None
        and ((name, None) not in use.accounts or use.accounts[name, None].logged is None)
    ]
    if not new:
        return
    beside: dict[QueueEntry | None, list[Account]] = {}
    for key, account in use.accounts.items():
        if key[1] is None and account.logged is not None and key[0] in entries:
            beside.setdefault(entries[key[0]].parent, []).append(account)
    weights = {name: entry.weight for name, entry in entries.items()}
    for entry in new:
        known = beside.get(entry.parent, [])
        active = [each for each in known if each.key[0] in present]
        begins = use.mean(active or known, weights) * entry.weight
        _open(use, use.account((entry.name, None)), begins)


def _open(use: PastUse, account: Account, past: int) -> None:
    queue, user = account.key
    account.logged = AccountUse(queue=queue, user=user, at_ms=use.now_ms, past=past, held=0)
    account.unwritten = account.moved = True


def _amounts(queues: QueueTable, account: Account) -> Mapping[int, int]:
    """What it holds now, by resource row; a queue with all queues below it."""
    queue, user = account.key
    if user is not None:
        return account.amounts
    entry = queues.entries.get(queue)
    return entry.used if entry is not None else {}


def _now(use: PastUse, account: Account, logged: AccountUse, held: int) -> AccountUse:
    past, used = use.past(account), logged.used or bool(held)
    return msgspec.structs.replace(logged, at_ms=use.now_ms, past=past, held=held, used=used)


def _pages(changed: Iterable[AccountUse], forgotten: Iterable[AccountKey]) -> Iterator[UseCharged]:
    uses, keys = sorted(changed, key=by_name), sorted(forgotten, key=_user_last)
    for begin in range(0, max(len(uses), len(keys)), PER_RECORD_MAX):
        page = slice(begin, begin + PER_RECORD_MAX)
        accounts, dropped = tuple(uses[page]), tuple(keys[page])
        yield UseCharged(epoch=0, at_ms=0, accounts=accounts, forgotten=dropped)


def _user_last(key: AccountKey) -> tuple[str, bool, str]:
    return key[0], key[1] is not None, key[1] or ""
