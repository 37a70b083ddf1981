"""The table of rights: what no account has, and that every controller has its rights."""

import pytest

from services.controller.config import CONTROLLERS as NAMES
from tutti.rights.table import ACCOUNTS, CONTROLLERS, Account


@pytest.mark.parametrize("account", ACCOUNTS, ids=lambda account: account.name)
def test_nothing_is_granted_that_grants_more(account: Account) -> None:
    for right in account.rights:
        assert "*" not in (right.group, right.resource, *right.verbs)
        assert not {"bind", "escalate", "impersonate"} & set(right.verbs)
        if right.group == "rbac.authorization.k8s.io":
            assert right.verbs == ("get",)
            assert right.names
        assert right.resource not in {"serviceaccounts/token", "pods/exec", "nodes/proxy"}
        assert right.why


def test_every_controller_that_can_be_chosen_has_its_rights_in_the_table() -> None:
    assert sorted(CONTROLLERS) == sorted(NAMES)
