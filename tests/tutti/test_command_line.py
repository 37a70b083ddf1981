"""What holds of all commands of `tutti`: a flag and an exit status mean one thing, and spellings of
earlier versions work.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete
from click.testing import CliRunner

from tests.documents.links import ROOT
from tests.documents.typed import objection
from tutti.api.flags import Flag, context_flag, everywhere_flag, kubeconfig_flag
from tutti.cli import OLD_SPELLINGS, main
from tutti.vcctl.command import vcctl

OPERATIONS: Final = (ROOT / "docs" / "operations.md").read_text()
#: Letters that are another flag in one command, each with the program that it follows.
EXCEPTIONS: Final = {
    ("job logs", "-f"): "--follow",  # kubectl logs
    ("job logs", "-c"): "--container",  # kubectl logs
    ("up", "-v"): "--verbose",  # It has no requests to log.
}
#: A kubeconfig of these is not read, but written.
WRITES_KUBECONFIG: Final = {"cluster up"}


def leaves(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that is in the help, by its words."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from leaves(inner, f"{path} {name}".strip())


COMMANDS: Final = dict(leaves(main))


def options(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option)]


def own(flag: Flag) -> click.Option:
    """The option that a decorator adds."""
    (option,) = click.command()(flag(lambda: None)).params
    assert isinstance(option, click.Option)
    return option


def test_a_letter_is_one_flag_in_all_commands() -> None:
    meanings: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for path, command in COMMANDS.items():
        for option in options(command):
            for letter in (each for each in option.opts if re.fullmatch("-[^-]", each)):
                meanings[letter][path] = option.opts[0]
    for letter, by_command in meanings.items():
        for path, flag in list(by_command.items()):
            if EXCEPTIONS.get((path, letter)) == flag:
                del by_command[path]
        assert len(set(by_command.values())) <= 1, (letter, by_command)


@pytest.mark.parametrize("path", COMMANDS)
def test_a_shared_flag_has_the_letter_values_and_help_that_the_documents_state(path: str) -> None:
    for option in options(COMMANDS[path]):
        match option.opts[0]:
            case "--namespace":
                assert "-n" in option.opts
                assert "amespace" in (option.help or "")
            case "--all-namespaces":
                assert option.opts == own(everywhere_flag).opts
            case "--filename":
                assert option.opts == ["--filename", "--file", "-f"]
            case "--output":
                assert "-o" in option.opts
                assert isinstance(option.type, click.Choice)
                assert set(option.type.choices) <= {"text", "wide", "name", "json", "yaml"}
                assert (option.default, option.type("table")) == ("text", "text")
            case "--kubeconfig" if path not in WRITES_KUBECONFIG:
                assert option.opts == own(kubeconfig_flag).opts
                assert option.help == own(kubeconfig_flag).help
            case "--context":
                assert option.opts == own(context_flag).opts
                assert option.help == own(context_flag).help
            case _:
                assert not {"-n", "-A", "-o", "-k"} & set(option.opts), option.opts


#: Words behind a command that reaches a cluster.
WORDS: Final = {
    "why": ["pod/a"],
    "explain-dialect": ["pod/a"],
    "fits": ["-f", "MANIFEST"],
    "job view": ["a"],
    "job suspend": ["a"],
    "job resume": ["a"],
    "job logs": ["a"],
    "job run": ["--name", "a"],
    "trace": ["a"],
    "bundle": ["FOLDER/bundle.tar.gz"],
    "provision": ["--namespace", "a", "--name", "a"],
    "simulate": ["TRACE", "--live"],
}
#: Ends as a service does; the tests of `tutti up` have its statuses.
SERVICES: Final = {"up"}
#: Reports what it could not collect, in the bundle.
ALWAYS_DONE: Final = {"bundle"}


@pytest.mark.parametrize(
    "path",
    [
        path
        for path, command in COMMANDS.items()
        if any("--context" in option.opts for option in options(command))
        and path not in SERVICES | ALWAYS_DONE
    ],
)
def test_a_command_that_reaches_no_cluster_ends_with_status_2_and_one_line(
    path: str, tmp_path: Path
) -> None:
    manifest = tmp_path / "pod.yaml"
    manifest.write_text("{apiVersion: v1, kind: Pod, metadata: {name: a}}")
    trace = tmp_path / "trace.csv"
    trace.write_text("run_time,interval,node_num\n1,0,1\n")
    names = {"MANIFEST": str(manifest), "TRACE": str(trace)}
    words = [names.get(word, word) for word in WORDS.get(path, [])]
    away = ["--kubeconfig", str(tmp_path / "none")]
    done = CliRunner().invoke(main, [*path.split(), *words, *away])
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("tutti: "), done.output
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "path",
    [
        path
        for path, command in COMMANDS.items()
        # Others pass all flags on.
        if not command.context_settings.get("ignore_unknown_options")
    ],
)
def test_wrong_usage_ends_with_status_2(path: str) -> None:
    assert CliRunner().invoke(main, [*path.split(), "--no-such-flag"]).exit_code == 2


@pytest.mark.parametrize("path", COMMANDS)
def test_a_help_names_only_statuses_that_the_documents_have(path: str) -> None:
    table = OPERATIONS.partition("| exit status | of every command;")[2].partition("\n\n")[0]
    documented = set(re.findall(r"^\| (\d+) \|", table, re.MULTILINE))
    assert documented == {"0", "1", "2", "3", "130"}
    found = re.search(r"Exits with status[^.]*", " ".join((COMMANDS[path].help or "").split()))
    named = set(re.findall(r"\b\d\b", found[0])) if found else set()
    assert named <= documented - (set() if path == "why" else {"3"})


# --- old spellings ---

#: Lines that documents of earlier versions have, and flags that their commands had.
DOCUMENTED: Final = (
    "tutti job list -o wide -A -l team=a -q research -S tutti -w",
    "tutti job list -o table",
    "tutti job delete train -n team",
    "tutti queue create --name research --weight 3 --parent root -S Open",
    "tutti queue list -o wide -l a=b",
    "tutti queue get research -n research -o json",
    "tutti queue operate --action close -n research -w 2",
    "tutti queue delete research",
    "tutti jobflow create -f flow.yaml",
    "tutti jobflow create --file flow.yaml",
    "tutti jobflow create --filename flow.yaml",
    "tutti jobtemplate list -A",
    "tutti cronjob suspend nightly",
    "tutti cronjob resume nightly",
    "tutti podgroup describe train --format json",
    "tutti podgroup get train -w",
    "tutti pod list --job train --queue research",
    "tutti top queues --watch --interval 5 -o json",
    "tutti top nodes --sort-by cpu -w",
    "tutti observe report --file report.json -o json",
    "tutti observe report --data-dir data --output text",
    "tutti convert queues -f - --gpu-resource nvidia.com/gpu",
    "kubectl tutti job list",
)


@pytest.mark.parametrize("typed", DOCUMENTED)
def test_a_spelling_that_was_documented_still_exists(typed: str) -> None:
    assert objection(typed) == ""


def test_every_old_spelling_is_among_those_and_in_the_document() -> None:
    for old in OLD_SPELLINGS:
        assert any(typed.startswith(f"tutti {old} ") for typed in DOCUMENTED), old
        assert old.split()[0] in OPERATIONS, old


@pytest.mark.parametrize(("old", "new"), OLD_SPELLINGS.items())
def test_an_old_spelling_has_the_help_of_the_new_one(old: str, new: str) -> None:
    program = vcctl if new.startswith("vcctl ") else main
    words = [word for word in new.removeprefix("vcctl ").split() if not word.startswith("-")]
    found = CliRunner().invoke(main, [*old.split(), "--help"], prog_name="tutti")
    assert found.exit_code == 0, found.output
    assert found.output.startswith(f"Usage: tutti {old} ")
    if program is main:
        meant = CliRunner().invoke(main, [*words, "--help"], prog_name="tutti")
        assert found.output.partition("\n")[2] == meant.output.partition("\n")[2]


def test_a_group_that_is_gone_names_its_commands_of_today() -> None:
    done = CliRunner().invoke(main, ["top", "--help"])
    assert done.exit_code == 2
    assert "`top nodes` is now `nodes`; `top queues` is now `queues --shares`" in done.stderr


def test_old_spellings_are_neither_in_the_help_nor_completed() -> None:
    helped = {line.split()[0] for line in _help().splitlines() if line.startswith("  ")}
    completed = {item.value for item in _complete([], "")}
    inner = {
        f"{group} {item.value}" for group in ("job", "migrate") for item in _complete([group], "")
    }
    assert completed == set(main.list_commands(click.Context(main)))
    assert not set(OLD_SPELLINGS) & (helped | completed | inner)
    assert {item.value for item in _complete(["queue"], "")} >= {"operate"}, "once it is typed"


def _help() -> str:
    return CliRunner().invoke(main, ["--help"]).output


def _complete(words: list[str], begun: str) -> list[CompletionItem]:
    return ShellComplete(main, {}, "tutti", "_TUTTI_COMPLETE").get_completions(words, begun)
