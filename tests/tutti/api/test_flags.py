import click
import pytest
from click.testing import CliRunner

from shared.kube.resources import JOBS_VOLCANO
from tutti.api.access import Access, namespace_or_default
from tutti.api.conventions import VOLCANO, Conventions
from tutti.api.failures import Refusal
from tutti.api.flags import PflagGroup, Selection, split_selector


@click.group(cls=PflagGroup)
@click.pass_context
def program(ctx: click.Context) -> None:
    """A program."""


@program.command()
@click.option("--name", "-N")
@click.option("--all", "-a", "everything", is_flag=True)
@click.argument("rest", nargs=-1)
def show(name: str, *, everything: bool, rest: tuple[str, ...]) -> None:
    """Show what was read."""
    click.echo(f"{name} {everything} {','.join(rest)}")


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["-N=train"], "train False "),
        (["-Ntrain"], "train False "),
        (["-N", "=odd"], "=odd False "),
        (["--name=a=b"], "a=b False "),
        (["--all=true", "-N", "x"], "x True "),
        (["-a=false", "-N", "x"], "x False "),
        (["-N", "x", "--", "-N=y"], "x False -N=y"),
    ],
)
def test_flags_are_read_as_pflag_reads_them(words: list[str], read: str) -> None:
    assert CliRunner().invoke(program, ["show", *words]).output == f"{read}\n"


def test_a_switch_with_a_value_that_is_no_truth_is_refused() -> None:
    done = CliRunner().invoke(program, ["show", "--all=maybe"])
    assert done.exit_code == 2
    assert "--all" in done.output


@pytest.mark.parametrize(
    ("habits", "given", "expected"),
    [
        (Conventions(), "train", ("train", "")),
        (VOLCANO, "train", ("", "train")),
        (VOLCANO, "app=train", ("app=train", "")),
        (VOLCANO, "app in (a, b)", ("app in (a, b)", "")),
        (VOLCANO, "", ("", "")),
    ],
    ids=["label", "part of the name", "equality", "set", "nothing"],
)
def test_a_word_is_a_label_for_kubectl_and_a_part_of_the_name_for_volcano(
    habits: Conventions, given: str, expected: tuple[str, str]
) -> None:
    with click.Context(program, obj=habits).scope():
        assert split_selector(given) == expected


def test_volcanos_tools_stay_in_default_whatever_the_context_says() -> None:
    assert namespace_or_default("", "team") == "team"
    with click.Context(program, obj=VOLCANO).scope():
        assert namespace_or_default("", "team") == "default"
        assert namespace_or_default("mine", "team") == "mine"


def test_names_come_from_the_flag_and_from_arguments_and_must_come() -> None:
    def selected(name: str, *names: str) -> Selection:
        return Selection(access=Access(), name=name, names=names)

    assert selected("a", "b", "c").required(JOBS_VOLCANO) == ("a", "b", "c")
    assert selected("", "b").single(JOBS_VOLCANO) == "b"
    with pytest.raises(Refusal, match="job name is mandatory"):
        selected("").required(JOBS_VOLCANO)
    with pytest.raises(Refusal, match="give one job name, not 2: a, b"):
        selected("a", "b").single(JOBS_VOLCANO)
