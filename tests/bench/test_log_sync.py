"""What syncing the log costs, measured as `python -m bench.log_sync` does."""

from pathlib import Path

from bench import log_sync


async def test_appends_are_timed_on_a_server_with_the_policy_asked_for(tmp_path: Path) -> None:
    found = await log_sync.measure("always", 20, tmp_path)
    assert "sync_interval: always" in (tmp_path / "nats.conf").read_text()
    assert found.policy == "always"
    assert 0.0 < found.append_p50_ms <= found.append_p99_ms
    assert found.batch_p50_ms > found.append_p50_ms
