"""A real Jaeger in the cluster, to which Tutti's services send their spans."""

import json
from typing import Final

from tests.controlplane.jaeger import configuration
from tests.realnodes.cluster import Object, RealCluster
from tests.realnodes.control import ToolError
from tests.realnodes.images import TAG
from tests.realnodes.workload import wait_until
from tests.tracing.traces import Trace, trace_of_jaeger

NAMESPACE: Final = "tracing"
_NAME: Final = "jaeger"
_PORTS: Final = {"otlp": 4318, "query": 16686, "query_grpc": 16685, "health": 13133}
#: Where services send spans; the value `tracing.otlpEndpoint`.
OTLP: Final = f"http://{_NAME}.{NAMESPACE}.svc:{_PORTS['otlp']}"
_QUERY: Final = f"/api/v1/namespaces/{NAMESPACE}/services/{_NAME}:query/proxy/api"
_START_S: Final = 120.0
_WHOLE_S: Final = 60.0
_LABELS: Final = {"app": _NAME}


def start_jaeger(cluster: RealCluster) -> None:
    """Run Jaeger, which keeps traces in memory, and wait until it answers."""
    container = {
        "name": _NAME,
        "image": f"{_NAME}:{TAG}",
        "args": ["--config=/etc/jaeger/jaeger.json"],
        # Otherwise it sends spans of itself to a default endpoint.
        "env": [{"name": "OTEL_TRACES_SAMPLER", "value": "always_off"}],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/jaeger"}],
    }
    pod = {
        "enableServiceLinks": False,
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": _NAME}}],
    }
    ports = [{"name": name, "port": number} for name, number in _PORTS.items() if "_" not in name]
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _object("v1", "ConfigMap", data={"jaeger.json": json.dumps(configuration("", _PORTS))}),
        _object(
            "apps/v1",
            "Deployment",
            spec={
                "selector": {"matchLabels": _LABELS},
                "template": {"metadata": {"labels": _LABELS}, "spec": pod},
            },
        ),
        _object("v1", "Service", spec={"selector": _LABELS, "ports": ports}),
    )

    def answers() -> bool:
        try:
            return "data" in cluster.kubectl("get", f"--raw={_QUERY}/services")
        except ToolError:
            return False

    wait_until(answers, _START_S, "Jaeger answers")


def whole_trace(cluster: RealCluster, trace_id: str) -> Trace:
    """The trace of a Job's gang, as soon as Jaeger has all of it: once its pods run."""
    found: list[Trace] = []

    def is_whole() -> bool:
        try:
            answer = cluster.kubectl("get", f"--raw={_QUERY}/traces/{trace_id}")
        except ToolError:
            return False  # Jaeger has no span of it yet
        traces = [trace_of_jaeger(one) for one in json.loads(answer)["data"]]
        found[:] = [one for one in traces if one.is_whole]
        return bool(found)

    wait_until(is_whole, _WHOLE_S, f"Jaeger has all of trace {trace_id}")
    return found[0]


def _object(version: str, kind: str, **content: object) -> Object:
    metadata = {"name": _NAME, "namespace": NAMESPACE}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}
