"""docs/client.ipynb shows what its cells answer, in a real Jupyter kernel."""

from pathlib import Path

import pytest

from tests.tutti.client.notebook import outputs, read, run
from tests.tutti.up import running as up

pytestmark = [pytest.mark.certify, pytest.mark.slow, pytest.mark.timeout(600)]


async def test_the_notebook_shows_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "READY_S", 150.0)
    notebook = read()
    documented = outputs(notebook)
    assert len([one for one in documented if one]) >= 6
    await run(notebook, tmp_path)
    assert outputs(notebook) == documented
