"""`tutti mcp` without its extra."""

import importlib.util

import pytest
from click.testing import CliRunner

from tutti.cli import main


def test_without_the_sdk_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    found = CliRunner().invoke(main, ["mcp"])
    assert found.exit_code == 2
    assert "install Tutti with its extra `mcp`" in found.output
