import click
import pytest
from click.testing import CliRunner

from tutti.vcctl.command import vcctl
from tutti.vcctl.help import Flag, usages


def helped(*words: str) -> str:
    done = CliRunner().invoke(vcctl, [*words, "--help"], prog_name="vcctl")
    assert done.exit_code == 0
    return done.output


def test_help_has_cobras_sections_in_cobras_order() -> None:
    lines = helped("job", "suspend", "-n", "job1").splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == [
        "abort a job",
        "Usage:",
        "Flags:",
        "Global Flags:",
    ]
    assert lines[3] == "  vcctl job suspend [flags]"
    assert '  -n, --namespace string    the namespace of job (default "default")' in lines


def test_help_names_no_default_of_the_kubeconfig_as_volcanos(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/etc/some/config")
    line = "  -k, --kubeconfig string   (optional) absolute path to the kubeconfig file\n"
    assert line in helped("job", "list")


def test_a_group_lists_its_commands_and_says_how_to_learn_more() -> None:
    text = helped("job")
    assert "\nAvailable Commands:\n  delete      delete a job\n" in text
    assert text.endswith('Use "vcctl job [command] --help" for more information about a command.\n')


def test_the_root_asked_for_nothing_answers_with_its_help() -> None:
    done = CliRunner().invoke(vcctl, [], prog_name="vcctl")
    assert (done.exit_code, done.output) == (0, helped())


def test_help_of_a_command_is_also_a_command() -> None:
    done = CliRunner().invoke(vcctl, ["help", "job", "list"], prog_name="vcctl")
    assert done.output == helped("job", "list")


def test_commands_that_volcano_has_not_help_as_ours_do() -> None:
    assert "Usage: vcctl job logs [OPTIONS] [NAME]..." in helped("job", "logs")


def test_flags_are_sorted_and_their_words_aligned() -> None:
    flags = [Flag("zeta", "z", "", "switch"), Flag("alpha", "", "int", "number", "1")]
    assert list(usages(flags)) == [
        "      --alpha int   number (default 1)",
        "  -z, --zeta        switch",
    ]


@pytest.mark.parametrize("words", [["job", "list", "--bad"], ["nonsense"], ["help", "none"]])
def test_what_is_not_understood_ends_with_status_1_as_gos_programs_do(words: list[str]) -> None:
    done = CliRunner().invoke(vcctl, words, prog_name="vcctl")
    assert done.exit_code == 1
    assert "Error: " in click.unstyle(done.output)
