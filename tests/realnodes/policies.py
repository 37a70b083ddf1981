"""The nftables rules of a cluster's NetworkPolicies: what an enforcer makes of them.

One set of rules serves every node, because all connections between pods are routed there. As
Kubernetes has it, a pod that a policy selects may have only the connections that some policy
allows; answers, and connections to and from other pods, are not limited. Of a connection to a
Service the rules see the pod that kube-proxy chose. Kinds of peers and ports that Tutti's chart
does not use are refused instead of ignored.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.controlplane.client import Object

#: The table that has all rules, in the network namespace of a node.
TABLE: Final = "inet tutti_policies"
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_PEER_FIELDS: Final = {"podSelector", "namespaceSelector"}

Labels = Mapping[str, str]


class UnsupportedPolicyError(RuntimeError):
    """A policy has something that these rules cannot express."""


def ruleset(
    policies: Sequence[Object], pods: Sequence[Object], namespaces: Sequence[Object]
) -> str:
    """Return a script for `nft` that replaces all rules at once.

    Args:
        policies: All NetworkPolicies.
        pods: All pods; those without an address of their own are left out.
        namespaces: All namespaces.

    Raises:
        UnsupportedPolicyError: A policy needs more than this can do.
    """
    cluster = _Addresses(pods, namespaces)
    chains: list[str] = []
    forward = ["type filter hook forward priority filter; policy accept;"]
    forward.append("ct state established,related accept")
    for direction, field, near, far in (
        ("Egress", "to", "saddr", "daddr"),
        ("Ingress", "from", "daddr", "saddr"),
    ):
        for pod in cluster.pods:
            limiting = [one for one in policies if _limits(one, direction, pod)]
            if limiting:
                address = pod["status"]["podIP"]
                chain = f"{direction.lower()}_{address.replace('.', '_')}"
                rules = [
                    f"{match}return"
                    for policy in limiting
                    for rule in policy["spec"].get(direction.lower()) or ()
                    for match in cluster.matches(rule, field, far, policy)
                ]
                chains.append(_chain(chain, [*dict.fromkeys(rules), "counter drop"]))
                forward.append(f"ip {near} {address} jump {chain}")
    body = "\n".join([*chains, _chain("forward", forward)])
    return f"table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{\n{body}\n}}\n"


def selects(selector: Object, labels: Labels) -> bool:
    """Whether a label selector matches; an empty one matches everything."""
    wanted = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(one, labels) for one in expressions
    )


def _holds(expression: Object, labels: Labels) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case other:
            raise UnsupportedPolicyError(f"operator {other}")


def _limits(policy: Object, direction: str, pod: Object) -> bool:
    """Whether a policy selects this pod for connections in this direction."""
    spec = policy["spec"]
    # The API server fills in the types.
    return (
        direction in spec["policyTypes"]
        and policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and selects(spec.get("podSelector") or {}, pod["metadata"].get("labels") or {})
    )


class _Addresses:
    """Pods with addresses, and the labels of their namespaces."""

    def __init__(self, pods: Sequence[Object], namespaces: Sequence[Object]) -> None:
        self.pods = [
            pod
            for pod in pods
            if pod["status"].get("podIP")
            and not pod["spec"].get("hostNetwork")
            and pod["status"].get("phase") not in _ENDED
        ]
        self._namespaces = {
            one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in namespaces
        }

    def matches(self, rule: Object, field: str, far: str, policy: Object) -> Iterator[str]:
        """What each packet that a policy's rule allows matches; nothing if no pod is meant."""
        where = ""
        if peers := rule.get(field):
            found = {address for peer in peers for address in self._of_peer(peer, policy)}
            if not found:
                return
            where = f"ip {far} {{ {', '.join(sorted(found))} }} "
        for port in rule.get("ports") or [{}]:
            yield where + _port(port)

    def _of_peer(self, peer: Object, policy: Object) -> Iterator[str]:
        if unknown := set(peer) - _PEER_FIELDS:
            raise UnsupportedPolicyError(f"peers by {', '.join(unknown)}")
        for pod in self.pods:
            namespace = pod["metadata"]["namespace"]
            if "namespaceSelector" in peer:
                labels = self._namespaces.get(namespace, {})
                is_near = selects(peer["namespaceSelector"], labels)
            else:
                is_near = namespace == policy["metadata"]["namespace"]
            if is_near and selects(
                peer.get("podSelector") or {}, pod["metadata"].get("labels") or {}
            ):
                yield pod["status"]["podIP"]


def _port(port: Object) -> str:
    """The match of one port of a rule; everything, if the rule has no ports."""
    if not port:
        return ""
    number = port.get("port")
    if not isinstance(number, int) or "endPort" in port:
        raise UnsupportedPolicyError(f"port {port}")
    return f"{port.get('protocol', 'TCP').lower()} dport {number} "


def _chain(name: str, lines: Sequence[str]) -> str:
    return "\n".join([f"chain {name} {{", *(f"  {line}" for line in lines), "}"])
