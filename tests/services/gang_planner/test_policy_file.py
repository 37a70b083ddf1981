"""What is logged of a policy file that is changed, or has parts without effect."""

import os
import pathlib

import pytest

from services.gang_planner.core.framework.arguments import ConfigurationError
from services.gang_planner.core.state.gang_settings import Defaults
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.policy_file import PolicyFile

TDM = "tiers: [{plugins: [{name: gang}, {name: tdm}]}]"


def test_a_plugin_that_is_not_offered_is_reported_and_the_file_loads(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(TDM)
    found = PolicyFile(str(path), Defaults())
    assert [one.name for one in found.configuration.policies(State()).policies] == ["gang"]
    assert found.report().startswith("without effect: plugin tdm: Tutti does not lend zones")


def test_a_strict_planner_refuses_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(TDM)
    with pytest.raises(ConfigurationError, match="strict: plugin tdm"):
        PolicyFile(str(path), Defaults(), strict=True)
    path.write_text("")
    assert PolicyFile(str(path), Defaults(), strict=True).report() == ""


async def test_an_invalid_change_is_reported_until_it_is_mended(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.gang_planner.policy_file._CHECK_PERIOD_S", 0.0)
    path = tmp_path / "scheduler.conf"
    path.write_text("actions: allocate")
    found = PolicyFile(str(path), Defaults())
    reported: list[str] = []

    class _EnoughError(Exception):
        pass

    def tell(text: str) -> None:
        reported.append(text)
        match len(reported):
            case 1:
                path.write_text("actions: dance")
            case 2:
                path.write_text("actions: allocate, backfill")
                os.utime(path, ns=(1, 1))
            case _:
                raise _EnoughError

    with pytest.raises(_EnoughError):
        await found.watch(lambda: None, tell)
    assert reported[0] == reported[2] == ""
    assert "the previous one is kept: actions: unknown action 'dance'" in reported[1]
    assert found.configuration.actions == ("allocate", "backfill")
