"""The tables of docs/rights.md: the rights of each account in Kubernetes and on NATS."""

from collections.abc import Iterable, Sequence

from shared.bus.permissions import User, users
from tutti.rights.table import ACCOUNTS, Account, Right


def rights_tables() -> dict[str, str]:
    """All of them, by name: `rights ACCOUNT`, and `nats users`."""
    made = {f"rights {one.name}": _table(("may", "on", "for"), _rows(one)) for one in ACCOUNTS}
    made["nats users"] = _table(
        ("user", "may publish on", "may subscribe to"),
        ((f"`{one.name}`", _subjects(one.publish), _subjects(one.subscribe)) for one in _users()),
    )
    return made


def _rows(account: Account) -> Iterable[Sequence[str]]:
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for right in account.rights:
        resources = grouped.setdefault((", ".join(right.verbs), _scope(right), right.why), [])
        name = f"`{right.resource}`" + (f" ({right.group})" if right.group else "")
        if name not in resources:
            resources.append(name)
    for (verbs, scope, why), resources in grouped.items():
        yield verbs, ", ".join(resources) + scope, why


def _scope(right: Right) -> str:
    named = f" named {', '.join(f'`{name}`' for name in right.names)}" if right.names else ""
    return named + (", in the release's namespace" if right.namespaced else "")


def _users() -> tuple[User, ...]:
    """The users of one replica of each service; further replicas differ by their number only."""
    return users(planners=1, webhooks=1, apis=1)


def _subjects(subjects: Iterable[str]) -> str:
    return " ".join(f"`{subject}`" for subject in subjects)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))
    return "".join(f"{line}\n" for line in lines)
