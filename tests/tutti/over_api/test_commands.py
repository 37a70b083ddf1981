"""What commands print over Tutti's API, as text and as data that the OpenAPI document describes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.api.core.openapi import openapi_document
from shared.contracts.cluster import NodeChanges
from shared.contracts.decisions import Cycle, EvictionDecision, Victim
from shared.contracts.questions import FitAnswer, LedgerAmount, LedgerAnswer, LedgerQueue
from shared.contracts.visibility import API_VERSION
from shared.model.objects import Node
from tests.services.api.conformity import violations
from tests.services.api.scene import FIRST_SEEN_MS
from tests.services.api.serving import Serving
from tests.support.golden import Golden
from tests.tutti.over_api.conftest import Typed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: NAMESPACE}
spec:
  schedulerName: tutti
  minAvailable: 2
  tasks:
    - name: worker
      replicas: 2
      template:
        spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]}
"""


def conforms(kind: str, found: Any) -> None:
    """The OpenAPI document that the service serves describes it."""
    assert violations(openapi_document(), kind, found) == []


async def test_queues_are_objects_of_the_api_in_every_format(
    typed: Typed, serving: Serving, golden: Golden
) -> None:
    amounts = (LedgerAmount(resource="cpu", used=4500, wanted=1000, deserved=6000),)
    serving.planner.queues = LedgerAnswer(
        queues=(
            LedgerQueue(name="a", exists=True, amounts=amounts, running=1, waiting=2),
            LedgerQueue(name="b", exists=True, why="its gangs wait for capacity"),
        )
    )
    text = await typed("queues")
    assert (text.exit_code, text.stderr) == (0, ""), text.output
    lines = [" ".join(line.split()) for line in text.stdout.splitlines()]
    golden(*lines)
    for words in (("queues",), ("top", "queues")):
        found = json.loads((await typed(*words, "-o", "json")).stdout)
        conforms("QueueList", found)
        assert found["items"][0]["status"]["gangs"]["notAdmitted"] == 0
        assert yaml.safe_load((await typed(*words, "-o", "yaml")).stdout) == found
        names = await typed(*words, "-o", "name")
        assert names.stdout == "queue.visibility.tutti.dev/a\nqueue.visibility.tutti.dev/b\n"
    one = json.loads((await typed("queues", "b", "-o", "json")).stdout)
    assert [each["metadata"]["name"] for each in one["items"]] == ["b"]
    assert "75% 4500m 6" in " ".join((await typed("top", "queues")).stdout.split())
    unknown = await typed("queues", "c")
    assert (unknown.exit_code, unknown.stderr) == (2, "tutti: no queue c\n")


async def test_nodes_are_read_from_the_api_only(
    typed: Typed, serving: Serving, golden: Golden
) -> None:
    amounts = (("cpu", 4_000), ("pods", 110))
    node = Node(uid="n1", name="n1", resource_version=1, allocatable=amounts)
    serving.state.apply_cluster(4, NodeChanges(epoch=1, at_ms=1, changed=(node,)))
    text = await typed("nodes")
    assert (text.exit_code, text.stderr) == (0, ""), text.output
    golden(*(" ".join(line.split()) for line in text.stdout.splitlines()))
    data = json.loads((await typed("nodes", "-o", "json")).stdout)
    assert [(each["name"], each["state"]) for each in data] == [("n1", "Ready")]
    missing = await typed("nodes", served=False)
    assert missing.exit_code == 2
    assert "the cluster does not serve visibility.tutti.dev" in missing.stderr


async def test_fits_asks_about_the_gangs_of_all_namespaces_together(
    typed: Typed, serving: Serving, tmp_path: Path, golden: Golden
) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(
        "---".join([JOB.replace("NAMESPACE", "a"), JOB.replace(", namespace: NAMESPACE", "")])
    )
    serving.planner.fit = FitAnswer(fits=True, ever=True, where=(("n0", 1), ("n1", 1)))
    text = await typed("fits", "-f", str(path), "-n", "b")
    assert text.exit_code == 0, text.output
    golden(text.stdout)
    serving.planner.fit = FitAnswer(
        fits=False,
        ever=True,
        sentence="no room",
        displaces=(("a/x", 3),),
        displaces_by="preempt",
    )
    both = await typed("fits", "-f", str(path), "-n", "b", "-o", "json")
    assert both.exit_code == 1, both.output
    found = json.loads(both.stdout)
    assert found["metadata"]["namespace"] == "b"
    assert [one.get("namespace", "") for one in found["status"]["gangs"]] == ["a", ""]
    conforms("Fit", found)
    path.write_text(JOB.replace("NAMESPACE", "b"))
    single = json.loads((await typed("fits", "-f", str(path), "-o", "json")).stdout)
    assert (single["kind"], single["apiVersion"]) == ("Fit", API_VERSION)
    waits = await typed("fits", "-f", str(path))
    assert "3 pods would be preempted for it, of a/x" in waits.stdout
    serving.planner.fit = FitAnswer(fits=False, ever=False, refused=True, sentence="no queue x")
    refused = await typed("fits", "-f", str(path))
    assert refused.exit_code == 2
    assert "these manifests would be refused:\n  b/train: no queue x" in refused.stderr


async def test_fits_asks_in_the_namespace_in_which_kubectl_would_create_the_objects(
    typed: Typed, serving: Serving, tmp_path: Path
) -> None:
    serving.planner.fit = FitAnswer(fits=True, ever=True)
    path = tmp_path / "jobs.yaml"
    queue = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}}\n---\n"
    for text, namespace in (
        (JOB.replace(", namespace: NAMESPACE", ""), "b"),
        (queue + JOB.replace("NAMESPACE", "a"), "a"),
        (queue + JOB.replace(", namespace: NAMESPACE", ""), "b"),
    ):
        path.write_text(text)
        found = await typed("fits", "-f", str(path), "-o", "json")
        assert found.exit_code == 0, found.output
        assert json.loads(found.stdout)["metadata"]["namespace"] == namespace


@pytest.mark.parametrize(
    "metadata", ["5", "x", "[a]", "{namespace: 5}", "{namespace: [a]}", "{namespace: {a: b}}"]
)
async def test_fits_refuses_metadata_of_a_wrong_type(
    typed: Typed, tmp_path: Path, metadata: str
) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(
        f"apiVersion: batch/v1\nkind: Job\nmetadata: {metadata}\nspec: {{template: {{}}}}"
    )
    found = await typed("fits", "-f", str(path))
    assert isinstance(found.exception, SystemExit), found.exception
    assert (found.exit_code, found.stdout) == (2, "")
    assert "metadata" in found.stderr


def eviction(gang: str, gang_id: str, why: str, at_ms: int = FIRST_SEEN_MS) -> EvictionDecision:
    """A decision to evict the gang's one pod."""
    return EvictionDecision(
        epoch=1,
        gang=gang,
        gang_id=gang_id,
        attempt=1,
        via="eviction",
        reason="Preempted",
        why=why,
        victims=(Victim(namespace=gang.partition("/")[0], name="pod-0", uid=gang_id),),
        trace_id="",
        cycle=Cycle(cluster_seq=1, outcomes_seq=1, now_ms=at_ms, configuration=""),
    )


async def test_trace_has_decisions_conditions_and_why_a_gang_waits(
    typed: Typed, serving: Serving
) -> None:
    decision = eviction("b/second", "b-second", "for b/first", FIRST_SEEN_MS + 5_000)
    serving.state.decisions.take(7, decision)
    text = await typed("trace", "second", "-n", "b")
    assert text.exit_code == 0, text.output
    lines = [" ".join(line.split()) for line in text.stdout.splitlines()]
    assert lines[0] == "b/second (b-second): Inqueue"
    assert "1 pod, Preempted: for b/first" in text.stdout
    found = json.loads((await typed("trace", "b/second", "-o", "json")).stdout)
    assert found["gangId"] == "b-second"
    assert [one["what"] for one in found["lines"]] == ["queued", "waits", "evicting"]
    assert found["lines"][2]["at"] == "2026-09-21T14:13:25.000Z"
    history = json.loads((await typed("timeline", "--since", "9999h", "-o", "json")).stdout)
    waiting = [one["gang"] for one in history["waits"] if "ended" not in one]
    assert waiting == ["a/x", "b/second"]
    missing = await typed("trace", "none", "-n", "b")
    assert missing.exit_code == 2
    assert "no gang b/none is known" in missing.stderr


async def test_trace_has_nothing_of_a_former_gang_of_the_same_name(
    typed: Typed, serving: Serving
) -> None:
    """Its decisions have another id, and were made before the gang of today was seen."""
    for seq, gang_id, at_ms in ((7, "former", -60_000), (8, "b-second", 5_000)):
        decision = eviction("b/second", gang_id, f"by {gang_id}", FIRST_SEEN_MS + at_ms)
        serving.state.take_decision(seq, decision)
    text = await typed("trace", "second", "-n", "b")
    assert "by b-second" in text.stdout
    assert "by former" not in text.stdout


async def test_trace_finds_a_gang_that_is_gone_by_the_title_that_lists_of_gangs_had(
    typed: Typed, serving: Serving
) -> None:
    decision = eviction("b/third-edcb668a-d7cd-405c-b0e5-d6bba136e70a", "third", "for b/first")
    serving.state.decisions.take(7, decision, "job/third")
    for reference in ("third", "job/third"):
        text = await typed("trace", reference, "-n", "b")
        assert text.exit_code == 0, text.output
        assert text.stdout.startswith("b/job/third (third): Gone")


async def test_a_cluster_without_the_api_is_named_in_a_sentence_with_both_remedies(
    typed: Typed, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace("NAMESPACE", "a"))
    for words in (
        ("queues",),
        ("top", "queues"),
        ("timeline",),
        ("trace", "x"),
        ("console", "--no-browser"),
        ("fits", "-f", str(path)),
    ):
        found = await typed(*words, served=False)
        assert (found.exit_code, found.stdout) == (2, ""), found.output
        (line,) = found.stderr.splitlines()
        assert line.startswith("tutti: the cluster does not serve visibility.tutti.dev")
        assert "run `tutti up --api` on the API server's machine, or set api.enabled" in line


async def test_an_api_that_fails_is_the_reason(
    typed: Typed, serving: Serving, golden: Golden
) -> None:
    serving.unavailable = "there is no connection to NATS"
    found = await typed("queues")
    assert found.exit_code == 2
    golden(found.stderr)
