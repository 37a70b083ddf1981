"""The rules that NetworkPolicies become."""

import re
from typing import Final

import pytest

from tests.controlplane.client import Object
from tests.realnodes.policies import UnsupportedPolicyError, ruleset, selects

_NAMESPACES: Final[list[Object]] = [
    {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}}
    for name in ("system", "users")
]
_SERVER: Final = "10.244.1.2"


def _pod(name: str, namespace: str, address: str | None, phase: str = "Running") -> Object:
    metadata = {"name": name, "namespace": namespace, "labels": {"app": name}}
    return {"metadata": metadata, "spec": {}, "status": {"podIP": address, "phase": phase}}


_PODS: Final = [
    _pod("server", "system", _SERVER),
    _pod("client", "system", "10.244.1.3"),
    _pod("client", "users", "10.244.2.3"),
    _pod("server", "system", "10.244.1.4", "Succeeded"),
    _pod("server", "system", None, "Pending"),
]


def _policy(**directions: list[Object]) -> Object:
    """A policy of the servers in `system`, with the rules of each direction."""
    types = [name.title() for name in directions]
    selector = {"matchLabels": {"app": "server"}}
    spec = {"podSelector": selector, "policyTypes": types, **directions}
    return {"metadata": {"namespace": "system"}, "spec": spec}


def _rules(*policies: Object) -> dict[str, list[str]]:
    """The lines of each chain."""
    script = ruleset(policies, _PODS, _NAMESPACES)
    return {
        name: [line.strip() for line in body.strip().splitlines()]
        for name, body in re.findall(r"chain (\w+) \{\n(.*?)\n\}", script, re.DOTALL)
    }


def _ingress(*policies: Object) -> list[str]:
    chains = _rules(*policies)
    assert set(chains) == {"ingress_10_244_1_2", "forward"}
    assert chains["forward"][-1] == f"ip daddr {_SERVER} jump ingress_10_244_1_2"
    return chains["ingress_10_244_1_2"]


def test_a_pod_that_no_policy_selects_is_not_limited() -> None:
    assert [line for line in _rules()["forward"] if "jump" in line] == []


def test_a_policy_without_rules_allows_nothing() -> None:
    assert _ingress(_policy(ingress=[])) == ["counter drop"]


def test_without_a_selector_of_namespaces_pods_of_the_policy_namespace_are_selected() -> None:
    clients: Object = {"podSelector": {"matchLabels": {"app": "client"}}}
    users = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "users"}}}
    ports = [{"port": 4222}, {"port": 53, "protocol": "UDP"}]
    near = _policy(ingress=[{"from": [clients], "ports": ports}])
    assert _ingress(near)[0] == "ip saddr { 10.244.1.3 } tcp dport 4222 return"
    assert _ingress(near)[1] == "ip saddr { 10.244.1.3 } udp dport 53 return"
    far = _policy(ingress=[{"from": [{**users, **clients}]}])
    assert _ingress(far)[0] == "ip saddr { 10.244.2.3 } return"
    everywhere = _policy(ingress=[{"from": [{"namespaceSelector": {}}]}])
    assert _ingress(everywhere)[0] == "ip saddr { 10.244.1.2, 10.244.1.3, 10.244.2.3 } return"


def test_a_rule_whose_peers_have_no_pods_allows_nothing_and_one_without_peers_allows_all() -> None:
    absent = {"podSelector": {"matchLabels": {"app": "absent"}}}
    both = _policy(ingress=[{"from": [absent]}, {"ports": [{"port": 8443}]}])
    assert _ingress(both) == ["tcp dport 8443 return", "counter drop"]


def test_what_several_policies_allow_adds_up() -> None:
    two = [_policy(ingress=[{"ports": [{"port": port}]}]) for port in (1, 2)]
    assert _ingress(*two) == ["tcp dport 1 return", "tcp dport 2 return", "counter drop"]


def test_connections_that_a_pod_opens_are_limited_by_egress_only() -> None:
    chains = _rules(_policy(egress=[{"ports": [{"port": 53}]}]))
    assert chains["egress_10_244_1_2"] == ["tcp dport 53 return", "counter drop"]
    assert chains["forward"][-1] == f"ip saddr {_SERVER} jump egress_10_244_1_2"


@pytest.mark.parametrize(
    "rule",
    [
        {"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
        {"ports": [{"port": "https"}]},
        {"ports": [{"port": 1, "endPort": 9}]},
    ],
)
def test_what_the_rules_cannot_express_is_refused(rule: Object) -> None:
    with pytest.raises(UnsupportedPolicyError):
        _rules(_policy(ingress=[rule]))


@pytest.mark.parametrize(
    ("operator", "values", "matched"),
    [
        ("In", ["a", "b"], [True, False]),
        ("NotIn", ["a"], [False, True]),
        ("Exists", [], [True, False]),
        ("DoesNotExist", [], [False, True]),
    ],
)
def test_selectors_have_all_operators(
    operator: str, values: list[str], matched: list[bool]
) -> None:
    expression: Object = {"key": "app", "operator": operator, "values": values}
    selector: Object = {"matchExpressions": [expression]}
    assert [selects(selector, labels) for labels in ({"app": "a"}, {})] == matched
