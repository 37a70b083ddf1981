"""Bodies of questions about manifests."""

import json
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["Fit", "Explanation"]


def a_job(name: str, *, tasks: int = 1, replicas: int = 1) -> dict[str, Any]:
    """A Volcano Job."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "tutti",
            "minAvailable": 1,
            "tasks": [
                {"name": f"t{number}", "replicas": replicas, "template": template}
                for number in range(tasks)
            ],
        },
    }


def a_question(kind: Kind, *manifests: dict[str, Any]) -> bytes:
    """The body of a Fit or an Explanation."""
    return json.dumps(
        {
            "apiVersion": "visibility.tutti.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": "question"},
            "spec": {"manifests": manifests},
        }
    ).encode()


def the_longest(kind: Kind) -> bytes:
    """0.9 MB that take seconds to read."""
    return a_question(kind, *(a_job(f"j{number}", tasks=30) for number in range(190)))
