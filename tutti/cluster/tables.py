"""Tables for kubectl: columns of pods, nodes, events and custom resources."""

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

from shared.kube.ages import since
from tutti.api.objects import field
from tutti.api.pod_table import ready, restarts, status
from tutti.cluster.admission import Call
from tutti.cluster.objects import Obj
from tutti.cluster.store import Stored

Cell = Callable[[Obj], Any]
Column = tuple[str, Cell]  # its name (wide ones end in *) and its value
_STEP = re.compile(r'\[\?\(@\.(\w+)\s*==\s*"([^"]*)"\)\]|\[(-?\d+):?\]|\.?((?:\\.|[^.\[\\])+)')


def _age(text: object) -> str:
    return since(text, dt.datetime.now(dt.UTC))


def _path(expression: str) -> Cell:
    """The part of JSONPath in printer columns: fields, positions, `[?(@.type=="X")]`."""
    steps = _STEP.findall(expression)

    def value(obj: object) -> object:
        for key, wanted, position, member in steps:
            if isinstance(obj, list) and key:
                obj = next((item for item in obj if item.get(key) == wanted), None)
            elif isinstance(obj, list) and position:
                obj = obj[int(position)] if obj else None
            else:
                obj = obj.get(member.replace("\\", "")) if isinstance(obj, dict) else None
        return obj

    return value


def _restarts(pod: Obj) -> str:
    return restarts(pod, dt.datetime.now(dt.UTC))


def _node_status(node: Obj) -> str:
    ready = _path('.status.conditions[?(@.type=="Ready")].status')(node)
    word = {"True": "Ready", "False": "NotReady"}.get(str(ready), "Unknown")
    return word + (",SchedulingDisabled" if field(node, "spec.unschedulable") else "")


_NAME: Column = ("Name", _path(".metadata.name"))
_AGE: Column = ("Age", lambda obj: _age(obj["metadata"]["creationTimestamp"]))
_BUILT_IN: dict[str, list[Column]] = {
    "pods": [
        *(_NAME, ("Ready", ready), ("Status", status), ("Restarts", _restarts), _AGE),
        *(("IP*", _path(".status.podIP")), ("Node*", _path(".spec.nodeName"))),
    ],
    "nodes": [_NAME, ("Status", _node_status), _AGE],
    "events": [
        ("Last Seen", lambda event: _age(event.get("lastTimestamp") or event.get("eventTime"))),
        *(("Type", _path(".type")), ("Reason", _path(".reason"))),
        ("Object", lambda event: "{kind}/{name}".format_map(event["involvedObject"]).lower()),
        ("Message", _path(".message")),
    ],
}


def _custom(column: Obj) -> Column:
    value = _path(column["jsonPath"])
    cell = (lambda obj: _age(value(obj))) if column["type"] == "date" else value
    return column["name"] + ("*" if column.get("priority") else ""), cell


def table(call: Call, rows: list[Stored], revision: int) -> Obj:
    """A meta.k8s.io/v1 Table; each row carries its object's metadata."""
    own = [_custom(column) for column in call.resource.columns.get(call.version, ())]
    plural = "" if call.resource.custom else call.resource.plural
    columns = [_NAME, *own] if own else _BUILT_IN.get(plural, [_NAME, _AGE])
    part: Obj = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": str(revision)},
        "columnDefinitions": [
            {"name": name.rstrip("*"), "type": "string", "priority": int(name.endswith("*"))}
            for name, _ in columns
        ],
        "rows": [
            {
                "cells": [cell(row.obj) for _, cell in columns],
                "object": part | {"metadata": row.obj["metadata"]},
            }
            for row in rows
        ],
    }
