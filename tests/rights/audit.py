"""Judges the API server's audit logs: what was denied to our accounts, and what they never used."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from typing_extensions import override

from tutti.rights.table import ACCOUNTS, RELEASE, Account, Right

#: Where logs are written; unset: nowhere.
FOLDER_VARIABLE: Final = "TUTTI_AUDIT"
NAMESPACE: Final = "kube-system"
RELEASE_NAME: Final = "tutti"
_NAMES: Final = frozenset(account.name for account in ACCOUNTS)

#: What no audit log shows, and why.
UNSEEN: Final = {
    ("binder", "resource.k8s.io", "resourceclaims/binding"): (
        "asked by the API server itself while it takes a patch of resourceclaims/status"
    ),
}


class Event(NamedTuple):
    """One request of one of our accounts."""

    account: str
    #: That of the account.
    home: str
    verb: str
    group: str
    #: As in a rule: "pods" or "pods/binding".
    resource: str
    namespace: str
    name: str
    allowed: bool

    @override
    def __str__(self) -> str:
        place = "/".join(filter(None, (self.namespace, self.name)))
        return f"{self.account}: {self.verb} {self.resource}.{self.group} {place}".rstrip()


class Judgement(NamedTuple):
    """What an audit found, in words; nothing: all is well.

    A request that the table allows and the API server denied is none: a server that starts denies
    everything until it has read its roles, and some tests restart it.
    """

    denied: tuple[str, ...]
    unused: tuple[str, ...]


def apiserver_args(folder: Path | None = None) -> tuple[str, ...]:
    """Flags by which an API server writes its audit log to the folder; by default that of the
    environment, if it names one.
    """
    given = folder or os.environ.get(FOLDER_VARIABLE)
    if not given:
        return ()
    place = Path(given)
    place.mkdir(parents=True, exist_ok=True)
    rules: list[dict[str, Any]] = [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ]
    policy = place / "policy.yaml"
    policy.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "audit.k8s.io/v1",
                "kind": "Policy",
                "omitStages": ["RequestReceived"],
                "rules": rules,
            }
        )
    )
    number = len([*place.glob("*.log")])
    return (
        f"--audit-policy-file={policy}",
        f"--audit-log-path={place / f'{os.getpid()}-{number}.log'}",
        "--audit-log-mode=blocking",
    )


def read(folder: Path) -> Iterator[Event]:
    """All requests in the folder's logs; a line that was cut by a kill is left out."""
    for path in sorted(folder.glob("*.log")):
        with path.open("rb") as lines:
            for line in lines:
                try:
                    event = _event(json.loads(line))
                except json.JSONDecodeError:
                    continue
                if event is not None:
                    yield event


def judge(events: Iterable[Event], accounts: Iterable[Account] = ACCOUNTS) -> Judgement:
    """Hold what was done against what may be done."""
    seen = set(events)
    rights = [(account, right) for account in accounts for right in account.rights]
    return Judgement(
        denied=tuple(
            sorted(
                {
                    str(event)
                    for event in seen
                    if not event.allowed
                    and not any(_is_for(event, *one, event.verb) for one in rights)
                }
            )
        ),
        unused=tuple(
            f"{account.name}: {verb} {right.resource}.{right.group} {','.join(right.names)}"
            for account, right in rights
            if (account.name, right.group, right.resource) not in UNSEEN
            for verb in right.verbs
            if not any(event.allowed and _is_for(event, account, right, verb) for event in seen)
        ),
    )


def _is_for(event: Event, account: Account, right: Right, verb: str) -> bool:
    """Whether the request is one that this verb of the right is for."""
    asked = (event.account, event.group, event.resource, event.verb)
    if asked != (account.name, right.group, right.resource, verb) or verb not in right.verbs:
        return False
    # Tests have releases of several names.
    patterns = [re.escape(name).replace(RELEASE, ".+") for name in right.names]
    if patterns and not any(re.fullmatch(pattern, event.name) for pattern in patterns):
        return False
    return not right.namespaced or event.namespace == event.home


def _event(raw: dict[str, Any]) -> Event | None:
    """Return the request of a line; None if it is not one of Tutti's about an object."""
    user: str = raw.get("user", {}).get("username", "")
    *_, home, account = ["", "", *user.split(":")]
    about = raw.get("objectRef")
    if about is None or account not in _NAMES:
        return None
    resource = about.get("resource", "")
    if "subresource" in about:
        resource = f"{resource}/{about['subresource']}"
    decision = raw.get("annotations", {}).get("authorization.k8s.io/decision", "")
    return Event(
        account=account,
        home=home,
        verb=raw["verb"],
        group=about.get("apiGroup", ""),
        resource=resource,
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        allowed=decision != "forbid",
    )
