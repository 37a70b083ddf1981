import stat
from pathlib import Path

import msgspec
import pytest

from shared.contracts.questions import ServiceStatus
from tutti.up.readiness import ReadyFile, WebhookRow, sort_out, webhook_row, write_atomically


def answer(pid: int, *, ready: bool = True, **more: object) -> ServiceStatus:
    fields = {"service": "binder", "instance": "binder-0", "version": "1", "http_port": 1}
    return msgspec.convert({**fields, "pid": pid, "ready": ready, **more}, ServiceStatus)


def test_a_process_is_recognised_by_its_id_not_by_the_name_it_gives_itself() -> None:
    """Another suite on the same NATS has a binder-0 as well."""
    found, missing = sort_out({"binder-0": 5}, [answer(6), answer(5, http_port=9)])
    assert found["binder-0"].http_port == 9
    assert not missing


@pytest.mark.parametrize(
    ("pid", "answers", "words"),
    [
        pytest.param(None, [answer(5)], "binder-0 does not run", id="between two processes"),
        pytest.param(5, [answer(6)], "binder-0 does not answer", id="not up yet"),
        pytest.param(
            5,
            [answer(5, ready=False, not_ready=["kubernetes: refused", "nats: away"])],
            "binder-0: kubernetes: refused, nats: away",
            id="not ready",
        ),
    ],
)
def test_what_is_missing_is_said(pid: int | None, answers: list[ServiceStatus], words: str) -> None:
    found, missing = sort_out({"binder-0": pid}, answers)
    assert missing == [words]
    assert not found


def test_the_ready_file_appears_whole_and_only_under_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ready.json"
    content = ReadyFile(
        nats_url="nats://x",
        nats_pid=1,
        services=(),
        webhook=WebhookRow(registered=False, reason="why"),
        ready_s=1.5,
    )
    write_atomically(path, content)
    write_atomically(path, content)
    assert [each.name for each in path.parent.iterdir()] == ["ready.json"]
    assert msgspec.json.decode(path.read_bytes(), type=ReadyFile) == content
    assert stat.S_ISREG(path.stat().st_mode)


URL = {"registration": "https://127.0.0.1:1"}
WHY = {"registration": "the API server does not reach https://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("given", "wanted", "row"),
    [
        pytest.param(
            answer(1, figures={"webhook_registered": 1.0}, notes=URL),
            True,
            WebhookRow(registered=True, url=URL["registration"]),
            id="registered",
        ),
        pytest.param(
            answer(1, figures={"webhook_registered": 0.0}, notes=WHY),
            True,
            WebhookRow(registered=False, reason=WHY["registration"]),
            id="not reached",
        ),
        pytest.param(
            None,
            True,
            WebhookRow(registered=False, reason="--replicas admission-webhook=0"),
            id="no replicas",
        ),
        pytest.param(
            None, False, WebhookRow(registered=False, reason="--no-webhook"), id="switched off"
        ),
    ],
)
def test_the_webhooks_row_has_its_url_or_the_reason(
    given: ServiceStatus | None, wanted: bool, row: WebhookRow
) -> None:
    assert webhook_row(given, wanted=wanted) == row
