"""Reviews over HTTPS: answers, what is no review, waiting for a queue, advice."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from services.admission_webhook import review_server
from services.admission_webhook.core.configurations import probe_object
from services.admission_webhook.core.named_groups import NamedGroup
from services.admission_webhook.group_lookup import GroupLookup
from shared.admission.admission import Subject, validate
from shared.admission.review import Verdict
from shared.contracts.annotations import GROUP_NAME
from shared.contracts.questions import FitAnswer
from shared.kube.resources import CONFIGMAPS, CRONJOBS_VOLCANO
from shared.runtime.guarded_server import BODY_BYTES_MAX
from tests.services.admission_webhook.reviews import (
    a_job,
    a_pod,
    a_pod_group,
    a_queue,
    a_task,
    decoded_patch,
    defaulted,
    review,
    volcano_queue,
)
from tests.services.admission_webhook.serving import Webhook
from tests.support.golden import Golden
from tests.support.waiting import eventually


@pytest.fixture
async def webhook(tmp_path: Path) -> AsyncIterator[Webhook]:
    async with Webhook(tmp_path).running() as running:
        yield running


async def test_defaults_come_as_a_patch_and_refusals_with_every_field(webhook: Webhook) -> None:
    _, changed = await webhook.post("/mutate", review(a_pod_group(minMember=2), uid="u-7"))
    assert (changed["uid"], changed["allowed"]) == ("u-7", True)
    assert decoded_patch(changed) == [{"op": "add", "path": "/spec/queue", "value": "default"}]

    refused = await webhook.validate(review(a_job(a_task(minAvailable=2), minAvailable=-1)))
    assert refused["allowed"] is False
    fields = [cause["field"] for cause in refused["status"]["details"]["causes"]]
    assert fields == ["spec.minAvailable", "spec.tasks[0].minAvailable"]


async def test_configurations_made_for_volcano_reach_the_same_rules(webhook: Webhook) -> None:
    _, changed = await webhook.post("/podgroups/mutate", review(a_pod_group(minMember=2)))
    assert decoded_patch(changed) == [{"op": "add", "path": "/spec/queue", "value": "default"}]
    for path in ("/jobs/validate", "/podgroups/validate"):
        _, refused = await webhook.post(path, review(a_job(a_task(minAvailable=2))))
        assert refused["status"]["code"] == 400


async def test_a_group_without_queue_gets_that_of_its_namespace(webhook: Webhook) -> None:
    webhook.queues.of_namespaces = {"team": "lane"}
    _, changed = await webhook.post("/mutate", review(a_pod_group(queue="default")))
    assert decoded_patch(changed) == [{"op": "add", "path": "/spec/queue", "value": "lane"}]


async def test_what_is_not_ours_is_allowed_unseen(webhook: Webhook) -> None:
    foreign = a_pod("kai-scheduler", {"scheduling.k8s.io/group-name": "Not Valid"})
    for path in ("/mutate", "/validate"):
        assert await webhook.post(path, review(foreign, uid="u")) == (
            200,
            {"uid": "u", "allowed": True},
        )
    assert webhook.figure('reviews_total{result="not ours"}') == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 400), (b"{", 400), (b'{"kind":"Pod"}', 400), (b"x" * (BODY_BYTES_MAX + 1), 413)],
    ids=["nothing", "half a JSON", "another kind", "more than the API server sends"],
)
async def test_what_is_no_review_is_refused_by_status(
    webhook: Webhook, body: bytes, status: int
) -> None:
    assert (await webhook.post("/validate", body))[0] == status
    assert (await webhook.validate(review(a_queue())))["allowed"], "and the next is answered"


async def test_an_object_that_is_no_object_is_no_crash(webhook: Webhook) -> None:
    body = review(a_queue(), resource=None).replace(b'"spec":{}', b'"spec":[1,{"a":null}]')
    assert b"[1," in body
    response = await webhook.validate(body)
    assert response["status"]["details"]["causes"][0]["field"] == "spec"


async def test_other_paths_and_plain_http_get_nothing(webhook: Webhook) -> None:
    assert (await webhook.post("/convert", review(a_queue())))[0] == 404
    with pytest.raises(aiohttp.ClientError):
        await webhook.session.post(webhook.url.replace("https", "http") + "/validate", data=b"")


async def test_a_queue_made_a_moment_ago_is_waited_for(webhook: Webhook) -> None:
    webhook.queues.later = [volcano_queue("fresh")]
    job = defaulted(a_job(a_task(), queue="fresh"))
    assert (await webhook.validate(review(job)))["allowed"]
    assert webhook.queues.waited == ["fresh"]


async def test_a_queue_that_does_not_appear_is_a_refusal(webhook: Webhook) -> None:
    job = a_job(a_task(), queue="never")
    assert not (await webhook.validate(review(job)))["allowed"]
    assert webhook.queues.waited == ["never"]


@pytest.mark.parametrize("gone", [True, False])
async def test_the_end_of_children_is_waited_for_when_a_queue_is_deleted(
    webhook: Webhook, gone: bool
) -> None:
    child = volcano_queue("child", parent="trial")
    webhook.queues.known = [volcano_queue("trial"), child]
    webhook.queues.ended = [child] if gone else []
    deletion = review({}, old=a_queue())
    assert (await webhook.validate(deletion))["allowed"] is gone
    assert webhook.queues.waited == ["trial"]


async def test_without_queues_the_answer_is_yes_with_a_warning(webhook: Webhook) -> None:
    webhook.queues.known = None
    response = await webhook.validate(review(a_job(a_task(), queue="any")))
    assert response["allowed"]
    assert "not known" in response["warnings"][0]


async def test_a_class_that_was_created_right_before_the_object_is_not_reported_missing(
    webhook: Webhook,
) -> None:
    """Also if its queue was, too."""
    webhook.queues.classes = frozenset()
    webhook.queues.later_classes = frozenset({"high"})
    webhook.queues.later = [volcano_queue("new")]
    job = defaulted(a_job(a_task(), queue="new", priorityClassName="high"))
    assert "warnings" not in await webhook.validate(review(job))
    assert webhook.queues.waited == ["new", "high"]
    other = defaulted(a_job(a_task(), priorityClassName="higt"))
    (warning,) = (await webhook.validate(review(other)))["warnings"]
    assert warning.startswith('tutti: there is no PriorityClass "higt" (did you mean "high"?)')


async def test_a_queue_that_was_created_right_before_the_cronjob_is_not_reported_missing(
    webhook: Webhook,
) -> None:
    spec = a_job(a_task(), queue="new", minAvailable=1)["spec"]
    cronjob = {
        "apiVersion": CRONJOBS_VOLCANO.api_version,
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": spec}},
    }
    (warning,) = (await webhook.validate(review(cronjob)))["warnings"]
    assert "unable to find job queue" in warning
    webhook.queues.later = [volcano_queue("new")]
    assert "warnings" not in await webhook.validate(review(cronjob))


async def test_a_gang_that_can_never_run_is_warned_of_and_not_refused(
    webhook: Webhook, golden: Golden
) -> None:
    webhook.adviser.answer = FitAnswer(fits=False, ever=False, sentence="9 GPUs on no node")
    response = await webhook.validate(review(defaulted(a_job(a_task(replicas=2)))))
    assert response["allowed"]
    golden(*response["warnings"])
    assert len(webhook.adviser.asked[0].pods) == 2


async def test_a_dry_run_reports_whether_the_gang_would_run(
    webhook: Webhook, golden: Golden
) -> None:
    webhook.adviser.answer = FitAnswer(fits=False, ever=True, sentence="2 GPUs are missing")
    job = defaulted(a_job(a_task()))
    assert "warnings" not in await webhook.validate(review(job))
    tried = await webhook.validate(review(job, dryRun=True))
    golden(*tried["warnings"])


async def test_a_pod_whose_group_is_missing_is_not_said_to_fit(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    missing = ("tutti: PodGroup team/train does not exist",)

    async def warnings(_lookup: GroupLookup, _named: NamedGroup) -> tuple[str, ...]:
        return missing

    webhook.adviser.answer = FitAnswer(fits=True, ever=True)
    pod = a_pod(annotations={GROUP_NAME: "train"})
    tried = await webhook.validate(review(pod, dryRun=True))
    golden(*tried["warnings"])
    monkeypatch.setattr(GroupLookup, "warnings", warnings)
    tried = await webhook.validate(review(pod, dryRun=True))
    assert tuple(tried["warnings"]) == missing


async def test_a_refused_gang_is_not_asked_about(webhook: Webhook) -> None:
    assert not (await webhook.validate(review(a_job())))["allowed"]
    assert webhook.adviser.asked == []


async def test_the_probes_object_comes_back_marked(webhook: Webhook) -> None:
    body = review(probe_object("random-1"), resource=CONFIGMAPS)
    _, response = await webhook.post("/probe", body)
    assert decoded_patch(response) == [
        {"op": "add", "path": "/data", "value": {"reached": "random-1"}}
    ]


async def test_stopping_finishes_what_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = Webhook(tmp_path)
    async with webhook.running():
        waiting = asyncio.Event()
        answer = asyncio.Event()

        async def wait_for_queue(name: str, timeout_s: float) -> bool:
            waiting.set()
            await answer.wait()
            return False

        monkeypatch.setattr(webhook.queues, "wait_for_queue", wait_for_queue)
        body = review(a_job(a_task(), queue="slow"))
        response = asyncio.create_task(webhook.validate(body))
        await waiting.wait()
        stopping = asyncio.create_task(webhook.server.stop())
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.post(webhook.url + "/validate", data=b"", ssl=webhook.trust())
        answer.set()
        assert (await response)["allowed"] is False
        await stopping


async def test_a_refusal_is_a_line_of_log_and_what_is_allowed_is_none(
    webhook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="services.admission_webhook")
    await webhook.validate(review(a_pod_group()))
    assert not caplog.records
    await webhook.validate(review(a_pod_group(minMember=-1)))
    (line,) = caplog.records
    assert line.getMessage().startswith("refused CREATE of PodGroup team/trial: ")
    assert "minMember" in line.getMessage()
    assert vars(line)["violations"] == 1


async def test_long_reviews_of_a_greedy_user_let_those_of_another_pass(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = threading.Event()
    judged: list[str] = []

    def judge(subject: Subject) -> Verdict:
        judged.append(subject.case.name)
        if subject.case.name == "greedy":
            assert opened.wait(30)
        return validate(subject)

    monkeypatch.setattr(review_server, "validate", judge)
    tasks = [a_task(name=f"t{number}") for number in range(200)]

    async def post(user: str) -> int:
        job = a_job(*tasks, name=user)
        body = review(job, userInfo={"username": user})
        status, _ = await webhook.post("/validate", body)
        return status

    greedy = [asyncio.create_task(post("greedy")) for _ in range(6)]
    await eventually(lambda: judged == ["greedy"], timeout_s=10, because="one of six has a thread")
    async with asyncio.timeout(20):
        assert await post("modest") == 200
        assert (await webhook.validate(review(a_job(a_task()))))["allowed"]
        refused, _ = await asyncio.wait(greedy, return_when=asyncio.FIRST_COMPLETED)
    assert [one.result() for one in refused] == [429], "one is judged, four wait"
    assert "greedy" not in judged[1:]
    opened.set()
    assert sorted(await asyncio.gather(*greedy)) == [200] * 5 + [429]
    assert webhook.figure('reviews_total{result="too many"}') == 1
    assert webhook.figure('reviews_total{result="malformed"}') == 0
