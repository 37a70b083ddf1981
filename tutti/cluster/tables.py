"""Lists as kubectl prints them: the columns of pods, nodes and custom resources; name and age for the rest."""

import datetime
import re
from collections.abc import Callable
from typing import Any

from tutti.cluster.admission import Call
from tutti.cluster.objects import Obj, dig, instant_of
from tutti.cluster.store import Stored

Cell = Callable[[Obj], Any]
_FILTER = re.compile(r'^\[\?\(@\.(\w+)\s*==\s*"([^"]*)"\)\]')


def age(text: object) -> str:
    """How long ago an instant was, as short as kubectl says it."""
    if not isinstance(text, str):
        return "<unknown>"
    seconds = int((datetime.datetime.now(datetime.UTC) - instant_of(text)).total_seconds())
    for unit, length, limit in (("s", 1, 120), ("m", 60, 180 * 60), ("h", 3600, 48 * 3600)):
        if seconds < limit:
            return f"{max(seconds, 0) // length}{unit}"
    return f"{seconds // 86400}d"


def _path(expression: str) -> Cell:
    """The part of JSONPath that printer columns use: fields, `\\.` in names, `[?(@.type=="X")]`."""

    def value(obj: object) -> object:
        rest = expression
        while rest and obj is not None:
            if found := _FILTER.match(rest):
                obj = (
                    next((i for i in obj if i.get(found[1]) == found[2]), None)
                    if isinstance(obj, list)
                    else None
                )
                rest = rest[found.end() :]
                continue
            step = re.match(r"\.?((?:\\.|[^.\[\\])+)", rest)
            if step is None:
                return None
            obj = obj.get(step[1].replace("\\", "")) if isinstance(obj, dict) else None
            rest = rest[step.end() :]
        return obj

    return value


def _pod_status(pod: Obj) -> str:
    states = [
        dig(status, f"state.{kind}")
        for status in dig(pod, "status.containerStatuses") or ()
        for kind in ("waiting", "terminated")
    ]
    reasons = [state["reason"] for state in states if state and state.get("reason")]
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    gated = any(
        item.get("reason") == "SchedulingGated" for item in dig(pod, "status.conditions") or ()
    )
    return str(
        dig(pod, "status.reason")
        or next(iter(reasons), None)
        or ("SchedulingGated" if gated else pod["status"]["phase"])
    )


def _ready(pod: Obj) -> str:
    statuses = dig(pod, "status.containerStatuses") or []
    return f"{sum(bool(item.get('ready')) for item in statuses)}/{len(pod['spec']['containers'])}"


def _node_status(node: Obj) -> str:
    ready = _path('.status.conditions[?(@.type=="Ready")].status')(node)
    word = {"True": "Ready", "False": "NotReady"}.get(str(ready), "Unknown")
    return word + (",SchedulingDisabled" if dig(node, "spec.unschedulable") else "")


_BUILT_IN: dict[str, list[tuple[str, str, int, Cell]]] = {
    "pods": [
        ("Ready", "string", 0, _ready),
        ("Status", "string", 0, _pod_status),
        (
            "Restarts",
            "integer",
            0,
            lambda p: sum(
                s.get("restartCount", 0) for s in dig(p, "status.containerStatuses") or ()
            ),
        ),
        ("Age", "string", 0, lambda p: age(p["metadata"]["creationTimestamp"])),
        ("IP", "string", 1, lambda p: dig(p, "status.podIP") or "<none>"),
        ("Node", "string", 1, lambda p: dig(p, "spec.nodeName") or "<none>"),
    ],
    "nodes": [
        ("Status", "string", 0, _node_status),
        ("Age", "string", 0, lambda n: age(n["metadata"]["creationTimestamp"])),
        ("Version", "string", 0, lambda n: dig(n, "status.nodeInfo.kubeletVersion") or ""),
    ],
    "events": [
        (
            "Last Seen",
            "string",
            0,
            lambda e: age(
                e.get("lastTimestamp") or e.get("eventTime") or e["metadata"]["creationTimestamp"]
            ),
        ),
        ("Type", "string", 0, lambda e: e.get("type", "")),
        ("Reason", "string", 0, lambda e: e.get("reason", "")),
        (
            "Object",
            "string",
            0,
            lambda e: f"{dig(e, 'involvedObject.kind')}/{dig(e, 'involvedObject.name')}".lower(),
        ),
        ("Message", "string", 0, lambda e: e.get("message", "")),
    ],
}


def _columns(call: Call) -> list[tuple[str, str, int, Cell]]:
    resource = call.resource
    name = ("Name", "string", 0, lambda obj: obj["metadata"]["name"])
    born = ("Age", "string", 0, lambda obj: age(obj["metadata"]["creationTimestamp"]))
    if not resource.custom:
        if resource.plural == "events":
            return list(_BUILT_IN["events"])
        return [name, *_BUILT_IN.get(resource.plural, [born])]
    own = [
        (column["name"], column["type"], column.get("priority", 0), _cell(column))
        for column in resource.columns.get(call.version, ())
    ]
    return [name, *(own or [born])]


def _cell(column: Obj) -> Cell:
    value = _path(column["jsonPath"])
    return (lambda obj: age(value(obj))) if column["type"] == "date" else value


def table(call: Call, rows: list[Stored], metadata: Obj, *, with_head: bool = True) -> Obj:
    """A meta.k8s.io/v1 Table; each row carries its object's metadata."""
    columns = _columns(call)
    head = [
        {
            "name": name,
            "type": "string" if kind == "date" else kind,
            "format": "name" if name == "Name" else "",
            "description": "",
            "priority": priority,
        }
        for name, kind, priority, _ in columns
    ]
    part: Obj = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": head if with_head else None,
        "rows": [
            {
                "cells": [cell(row.obj) for _, _, _, cell in columns],
                "object": part | {"metadata": row.obj["metadata"]},
            }
            for row in rows
        ],
    }
