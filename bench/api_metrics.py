"""Reads what an API server counted about itself: requests by verb, and open watches."""

import re
from collections.abc import Mapping

_SAMPLE = re.compile(r"^(\w+)\{(.*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
WRITE_VERBS = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
#: The API server writes its own Leases and the like; they belong to nothing that we measure.
_OWN_GROUPS = frozenset({"apiregistration.k8s.io", "flowcontrol.apiserver.k8s.io"})


def writes(metrics: str) -> dict[str, int]:
    """Return writes since the API server's start, by "VERB resource[/subresource][ (dry run)]"."""
    counted: dict[str, int] = {}
    for labels, value in _samples(metrics, "apiserver_request_total"):
        if labels.get("verb") not in WRITE_VERBS or labels.get("group") in _OWN_GROUPS:
            continue
        what = "/".join(filter(None, (labels.get("resource"), labels.get("subresource"))))
        dry = " (dry run)" if labels.get("dry_run") else ""
        name = f"{labels['verb']} {what}{dry}"
        counted[name] = counted.get(name, 0) + int(value)
    return counted


def since(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return what was counted in between, most first."""
    changes = {name: count - before.get(name, 0) for name, count in after.items()}
    ordered = sorted(changes.items(), key=lambda item: (-item[1], item[0]))
    return {name: count for name, count in ordered if count}


def pod_watches(metrics: str) -> int:
    """Return how many watches on pods are open now."""
    found = 0.0
    for labels, value in _samples(metrics, "apiserver_longrunning_requests"):
        if labels.get("verb") == "WATCH" and labels.get("resource") == "pods":
            found += value
    return int(found)


def broken_watches(metrics: str) -> int:
    """Return how many watches the API server has ended because their readers fell behind."""
    counted = _samples(metrics, "apiserver_terminated_watchers_total")
    return int(sum(value for _, value in counted))


def _samples(metrics: str, name: str) -> list[tuple[dict[str, str], float]]:
    found = []
    for line in metrics.splitlines():
        if line.startswith(name):
            match = _SAMPLE.match(line)
            if match is not None and match.group(1) == name:
                found.append((dict(_LABEL.findall(match.group(2))), float(match.group(3))))
    return found
