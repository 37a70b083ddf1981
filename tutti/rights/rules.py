"""RBAC rules generated from rights, and the two files that the chart reads."""

from collections.abc import Iterable
from typing import Any, Final

import yaml

from shared.bus.permissions import users
from tutti.rights.table import ACCOUNTS, EVERYBODY, Right

_ORDER: Final = ("get", "list", "watch", "create", "update", "patch", "delete")
_HEAD: Final = (
    "# Made by `make manifests` from tutti/rights/table.py: do not edit. RELEASE in names of\n"
    "# objects stands for the name of the release, SCHEDULER_NAMES for all that it serves.\n"
    "# namespacedRules: in the release's namespace.\n"
)
_NATS_HEAD: Final = (
    "# Made by `make manifests` from shared/bus/permissions.py: do not edit. By NATS user;\n"
    "# answers: it may answer what it was asked (allow_responses).\n"
)


def rules(rights: Iterable[Right]) -> list[dict[str, Any]]:
    """The rules of one Role or ClusterRole, sorted: rights on the same objects are one rule, and
    resources of a group with the same verbs share one.
    """
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for right in rights:
        verbs.setdefault((right.group, right.resource, right.names), set()).update(right.verbs)
    shared: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resource, names), allowed in sorted(verbs.items()):
        ordered = tuple(sorted(allowed, key=_ORDER.index))
        shared.setdefault((group, ordered, names), []).append(resource)
    return [
        {
            "apiGroups": [group],
            "resources": resources,
            **({"resourceNames": list(names)} if names else {}),
            "verbs": list(ordered),
        }
        for (group, ordered, names), resources in shared.items()
    ]


def rights_file() -> str:
    """The content of deploy/chart/files/rights.yaml."""
    content = {
        account.name: {
            "account": account.token,
            "clusterRules": rules(one for one in account.rights if not one.namespaced),
            "namespacedRules": rules(one for one in account.rights if one.namespaced),
        }
        for account in ACCOUNTS
    }
    # Not an account of Tutti: the chart binds these to the group system:authenticated.
    content["everybody"] = {
        "account": False,
        "clusterRules": rules(EVERYBODY),
        "namespacedRules": [],
    }
    return _HEAD + yaml.safe_dump(content, sort_keys=False, width=100)


def permissions_file() -> str:
    """The content of deploy/chart/files/nats-permissions.yaml."""
    content = {
        user.name: {
            "answers": user.answers,
            "publish": list(user.publish),
            "subscribe": list(user.subscribe),
        }
        for user in users()
    }
    return _NATS_HEAD + yaml.safe_dump(content, sort_keys=False, width=100)
