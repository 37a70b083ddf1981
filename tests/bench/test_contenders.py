"""What is prepared before Tutti is measured."""

import sys
import tomllib
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from bench import contenders
from bench.contenders import compile_modules


def test_modules_are_compiled_where_python_is_to_write_no_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = tmp_path / "package" / "module.py"
    module.parent.mkdir()
    module.write_text("VALUE = 1\n")
    compile_modules([tmp_path])
    assert Path(cache_from_source(str(module))).is_file()


def test_all_packages_of_the_wheel_are_compiled() -> None:
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert set(contenders.PACKAGES) == set(wheel["packages"])
