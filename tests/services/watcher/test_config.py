"""The watcher's settings: what they accept, and what they refuse."""

import pytest

from services.watcher.config import WatcherSettings
from shared.runtime.settings import SettingsError, parse


def test_we_answer_to_three_names_unless_configured_otherwise() -> None:
    settings = parse(WatcherSettings, [], {})
    assert settings.scheduler_name == ("tutti", "kube-batch", "volcano")
    assert settings.podgroup_controller


def test_scheduler_names_are_given_one_by_one_or_in_the_environment() -> None:
    flags = ["--scheduler-name=ours", "--scheduler-name=team.ours", "--no-podgroup-controller"]
    settings = parse(WatcherSettings, flags, {"TUTTI_SCHEDULER_NAME": "other"})
    assert settings.scheduler_name == ("ours", "team.ours")
    assert not settings.podgroup_controller
    settings = parse(WatcherSettings, [], {"TUTTI_SCHEDULER_NAME": "one,two"})
    assert settings.scheduler_name == ("one", "two")


@pytest.mark.parametrize("name", ["Not A Name", "x" * 64, ""])
def test_a_name_that_no_pod_can_bear_is_refused_with_the_setting(name: str) -> None:
    with pytest.raises(SettingsError, match="scheduler-name"):
        parse(WatcherSettings, [f"--scheduler-name={name}"], {})
