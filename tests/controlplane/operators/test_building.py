"""Edits of a module's source: they fit it exactly, or nothing is built."""

from pathlib import Path

import pytest

from tests.controlplane.go_builds import BinariesError
from tests.controlplane.operators.building import Edit, apply_edit


def test_an_edit_replaces_the_one_place_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text('listen(":8080")\n')
    apply_edit(Edit("main.go", '":8080"', '"127.0.0.1:8080"'), tmp_path)
    assert (tmp_path / "main.go").read_text() == 'listen("127.0.0.1:8080")\n'


@pytest.mark.parametrize("text", ["listen(address)", 'a(":8080"); b(":8080")'])
def test_an_edit_that_does_not_fit_another_version_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "main.go").write_text(text)
    with pytest.raises(BinariesError, match=r"main.go has .* [02] times, not once"):
        apply_edit(Edit("main.go", '":8080"', '"127.0.0.1:8080"'), tmp_path)
    assert (tmp_path / "main.go").read_text() == text
