"""What a whole `tutti up` answers about queues, nodes, decisions, fits and manifests, and that all
answers are what the OpenAPI document says.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.controlplane.client import ApiError, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.services.api.conformity import violations
from tests.services.api.scene import GROUP_PATH
from tests.support.waiting import eventually
from tests.tutti.up import running as up
from tests.tutti.up.gangs import bound, make_gang, make_nodes
from tutti.cli import main

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

_PATIENCE_S = 90.0
Json = dict[str, Any]


def a_fit(cpu: str) -> Json:
    """A Volcano Job of two pods with so much CPU each."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    task = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "asked"},
        "spec": {"minAvailable": 2, "tasks": [task]},
    }
    return {
        "apiVersion": "visibility.tutti.dev/v1alpha1",
        "kind": "Fit",
        "metadata": {"name": "question"},
        "spec": {"manifests": [job]},
    }


def _members(gangs: list[Json], namespace: str) -> list[int]:
    """Those of other tests of the same control plane are in other namespaces."""
    return [
        one["status"]["members"]["total"]
        for one in gangs
        if one["metadata"]["namespace"] == namespace
    ]


def _used(queues: list[Json], name: str) -> dict[str, str]:
    """What a queue uses, by resource."""
    return {
        amounts["resource"]: amounts["used"]
        for one in queues
        if one["metadata"]["name"] == name
        for amounts in one["status"].get("resources", ())
    }


async def listed(api: RawClient, plural: str, shown: Callable[[list[Json]], bool]) -> Json:
    """A list of all namespaces, once it shows what is expected."""

    async def answer() -> Json:
        try:
            found: Json = await api.get(f"{GROUP_PATH}/{plural}")
        except ApiError as error:
            if error.status not in {404, 503}:
                raise
            raise AssertionError(str(error)) from error
        assert shown(found["items"]), found["items"]
        return found

    return await eventually(answer, timeout_s=_PATIENCE_S, because=f"{plural} are current")


def a_suggestion(gang: str) -> Json:
    return {
        "apiVersion": "visibility.tutti.dev/v1alpha1",
        "kind": "Suggestion",
        "metadata": {"name": "question"},
        "spec": {"gang": gang},
    }


async def suggested(api: RawClient, namespace: str, gang: str) -> Json:
    """What would help a gang of one CPU a member, once the planner has tried its changes."""
    path = f"{GROUP_PATH}/namespaces/{namespace}/suggestions"

    async def answer() -> Json:
        try:
            found: Json = await api.create(path, a_suggestion(gang))
        except ApiError as error:
            # The service has not seen the gang yet.
            if error.status != 404:
                raise
            raise AssertionError(str(error)) from error
        kinds = {each["kind"] for each in found["status"].get("suggestions", ())}
        assert {"minimum", "requests", "nodes"} <= kinds, found
        return found

    # An answer is kept for ten seconds.
    return await eventually(answer, timeout_s=_PATIENCE_S, because="changes were tried")


async def printed_suggestions(
    plane: ControlPlane, namespace: str, gang: str, folder: Path
) -> tuple[str, str]:
    """What `kubectl create` and `tutti why` print about what would help a PodGroup."""
    path = folder / "suggestion.json"
    path.write_text(json.dumps(a_suggestion(gang)))
    created = ("create", "-n", namespace, "-f", str(path), "-o", "yaml")
    of_kubectl = await asyncio.to_thread(plane.kubectl, *created)
    flags = ("-n", namespace, "--kubeconfig", str(plane.admin_kubeconfig))
    why = ("why", f"podgroup/{gang}", "--what-would-help", *flags)
    of_why = await asyncio.to_thread(CliRunner().invoke, main, why, catch_exceptions=False)
    assert of_why.exit_code == 0, of_why.output
    return of_kubectl, of_why.output


async def test_answers_of_a_whole_tutti_are_what_the_document_says(
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
    empty_cluster: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(up, "READY_S", 150.0)
    await make_nodes(api)
    async with up.suite(
        control_plane.admin_kubeconfig, tmp_path, "--no-webhook", "--api"
    ) as running:
        await running.wait_ready()
        await make_gang(api, namespace, "train")
        await make_gang(api, namespace, "waits", members=2, least=9)
        await bound(api, namespace, "train", timeout_s=_PATIENCE_S)
        # The watcher, the planners and the API service see the bound pods one after the other.
        expected: dict[str, Callable[[list[Json]], bool]] = {
            "gangs": lambda items: sorted(_members(items, namespace)) == [2, 3],
            "decisions": lambda items: len(items) == 1,
            "nodes": lambda items: sum(one["status"]["members"] for one in items) == 3,
            "instances": lambda items: len(items) == 7,
            "podshapes": lambda items: [one["status"]["members"] for one in items] == [5],
            "queues": lambda items: _used(items, "default").get("cpu") == "3",
        }
        answers = {plural: await listed(api, plural, shown) for plural, shown in expected.items()}
        (decision,) = answers["decisions"]["items"]
        assert decision["status"]["action"] == "Bind"
        assert decision["status"]["gang"] == f"{namespace}/train"
        assert {pod["name"] for pod in decision["status"]["pods"]} == {
            f"train-{index}" for index in range(3)
        }
        folder = f"{GROUP_PATH}/namespaces/{namespace}/fits"
        fits = await api.create(folder, a_fit("1"))
        never = await api.create(folder, a_fit("400"))
        question = a_fit("1") | {"kind": "Explanation"}
        explanation = await api.create(folder.replace("fits", "explanations"), question)
        assert [one["title"] for one in explanation["status"]["gangs"]] == [f"{namespace}/asked"]
        assert fits["status"]["fits"]
        assert [one["ever"] for one in never["status"]["gangs"]] == [False]
        unknown = {"apiVersion": "a/v1", "kind": "Unknown", "metadata": {"name": "x"}}
        with pytest.raises(ApiError, match=r"spec.manifests: .* declares no gang") as refused:
            await api.create(folder, a_fit("1") | {"spec": {"manifests": [unknown]}})
        assert refused.value.status == 422
        with pytest.raises(ApiError, match="cannot be created here"):
            await api.create(f"{GROUP_PATH}/namespaces/{namespace}/gangs", {})

        await make_gang(api, namespace, "large", members=14, least=14)
        suggestion = await suggested(api, namespace, "large")
        for printed in await printed_suggestions(control_plane, namespace, "large", tmp_path):
            # YAML wraps long lines.
            words = " ".join(printed.split())
            for each in suggestion["status"]["suggestions"]:
                assert each["change"] in words

        document = await api.get(f"/openapi/v3{GROUP_PATH}")
        for answer in (*answers.values(), fits, never, explanation, suggestion):
            assert violations(document, answer["kind"], answer) == []
        for one in answers["gangs"]["items"]:
            assert violations(document, "Gang", one) == []
        broken = json.loads(json.dumps(decision))
        broken["status"]["action"] = "Guess"
        broken["status"]["unknown"] = 1
        del broken["metadata"]["name"]
        assert len(violations(document, "Decision", broken)) == 3
        explained = await asyncio.to_thread(
            control_plane.kubectl, "explain", "gangs.status.pending"
        )
        assert "Why a gang waits." in explained
