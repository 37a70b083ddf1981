"""A new subcommand is one module and one line of the table in `tutti/cli.py`, and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents.links import ROOT

COMMAND = '''"""`tutti greet`: greets a namespace."""

import click


@click.command()
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace.")
def greet(namespace: str) -> None:
    """Greet a namespace."""
    click.echo(f"hello {namespace}")
'''
LINE = '        "greet": ("tutti.greet_command:greet", "Greet a namespace."),\n'
TABLE = '    "For users": {\n'


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the product's source with one command more."""
    for package in ("shared", "tutti"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    (tmp_path / "tutti" / "greet_command.py").write_text(COMMAND)
    table = tmp_path / "tutti" / "cli.py"
    table.write_text(table.read_text().replace(TABLE, TABLE + LINE, 1))
    return tmp_path


def run(copy: Path, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "tutti.cli", *arguments],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_command_is_added_by_one_module_and_one_line_of_the_table(copy: Path) -> None:
    assert run(copy, "greet", "-n", "team") == "hello team\n"
    assert "Greet a namespace." in run(copy, "--help")
    assert "--namespace" in run(copy, "greet", "--help")
