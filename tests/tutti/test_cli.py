import json
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tutti.cli import HEADINGS, main

#: What only some subcommands need.
HEAVY = {
    *("aiohttp", "nats", "numpy", "rich", "kubernetes_asyncio"),
    *("shared.kube.client", "tutti.cluster"),
}


def imported_by(*arguments: str) -> set[str]:
    """Every module in memory after `tutti ARGUMENTS`."""
    program = (
        "import json, sys\n"
        "from tutti.cli import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "except SystemExit:\n"
        "    pass\n"
        "sys.stderr.write(json.dumps(sorted(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("up", "--help")])
def test_help_imports_nothing_that_it_does_not_need(arguments: tuple[str, ...]) -> None:
    assert not imported_by(*arguments) & HEAVY


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)))
def test_every_subcommand_is_there_and_helps(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.help
    assert f"  {name}" in CliRunner().invoke(main, ["--help"]).output


def test_the_help_has_a_line_for_each_command_under_its_heading() -> None:
    lines = CliRunner().invoke(main, ["--help"]).output.splitlines()
    for heading, table in HEADINGS.items():
        begin = lines.index(f"{heading}:") + 1
        assert [line.split()[0] for line in lines[begin : begin + len(table)]] == list(table)


def test_an_unknown_subcommand_is_refused() -> None:
    done = CliRunner().invoke(main, ["upp"])
    assert done.exit_code == 2
    assert "No such command 'upp'" in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--replicas", "bindr=1"], "no service 'bindr'", id="service"),
        pytest.param(["--webhook-port", "70000"], "70000 is not in the range", id="port"),
        pytest.param(["--scheduler-conf", "/none"], "does not exist", id="missing file"),
        pytest.param(["--jaeger", "jaeger:16686"], "must be http://", id="Jaeger"),
        pytest.param(["--otlp", "collector:4317"], "must be http://", id="OTLP"),
        pytest.param(["--port", "1"], "No such option", id="unknown flag"),
    ],
)
def test_wrong_flags_of_up_are_refused_by_name(arguments: list[str], words: str) -> None:
    done = CliRunner().invoke(main, ["up", *arguments])
    assert done.exit_code == 2
    assert words in done.output
    assert arguments[0] in done.output


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("tutti.cli import main", ["completion", "bash"]),
        ("tutti.cli import main", ["--help"]),
        ("tutti.cli import main", ["--version"]),
        ("tutti.cli import main", ["fits", "--help"]),
        ("tutti.vcctl.command import main", ["--help"]),
        ("tutti.vcctl.command import main", ["job", "--help"]),
        ("tutti.vcctl.slurm import vsub as main", ["--help"]),
    ],
)
def test_an_output_that_cannot_be_written_is_reported_in_a_line(
    program: str, arguments: list[str]
) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", f"from {program}; main()", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["tutti: [Errno 28] No space left on device"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["fits", "-f", "-"],
        ["explain-dialect", "-f", "-"],
        ["job", "run", "-f", "-"],
        ["podgroup", "create", "-f", "-"],
        ["convert", "queues", "-f", "-"],
    ],
    ids=" ".join,
)
def test_an_input_that_is_closed_is_an_empty_one(arguments: list[str]) -> None:
    command = shlex.join([sys.executable, "-c", "from tutti.cli import main; main()", *arguments])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} <&-"], capture_output=True, text=True, check=False
    )
    assert done.returncode in {1, 2}
    assert "there " in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_command_whose_output_is_closed_ends_as_it_would() -> None:
    """Rich tables ask whether the output is a terminal."""
    program = (
        "import sys; from tutti.cli import StreamCommand; "
        "StreamCommand('c', callback=lambda: sys.exit(3 if sys.stdout.isatty() else 1))()"
    )
    command = shlex.join([sys.executable, "-c", program])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} >&-"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
