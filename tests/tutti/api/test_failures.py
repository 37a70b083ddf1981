import click
import pytest
from click.testing import CliRunner

from shared.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound, api_error
from shared.kube.objects import StatusCause, StatusDetails
from tests.support.golden import Golden
from tutti.api.conventions import VOLCANO
from tutti.api.failures import Refusal, explained, run


async def refused() -> None:
    raise Refusal("it cannot be")


@click.group()
def program() -> None:
    """A program."""


@program.group()
def job() -> None:
    """A noun."""


@job.command("list")
def list_() -> None:
    """A verb."""
    run(refused())


def test_a_failure_is_one_line_on_standard_error_and_status_2(golden: Golden) -> None:
    done = CliRunner().invoke(program, ["job", "list"])
    assert (done.exit_code, done.stdout) == (2, "")
    golden(done.stderr)


def test_volcanos_tools_fail_as_they_always_did(golden: Golden) -> None:
    done = CliRunner().invoke(program, ["job", "list"], obj=VOLCANO)
    assert done.exit_code == 255
    golden(done.stdout)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(
            NotFound(404, "NotFound", 'jobs "a" not found', StatusDetails(name="a", kind="jobs")),
            "there is no job 'a'",
            id="object",
        ),
        pytest.param(api_error(404, b"404 page not found"), "tutti up --install-crds", id="kind"),
        pytest.param(
            Conflict(409, "AlreadyExists", 'jobs "a" already exists'), "another name", id="exists"
        ),
        pytest.param(
            Invalid(
                422,
                "Invalid",
                "all in one",
                StatusDetails(
                    causes=(
                        StatusCause(field="spec.x", message="too big"),
                        StatusCause(field="spec.y", message="too small"),
                    )
                ),
            ),
            "\n  spec.x: too big\n  spec.y: too small",
            id="several fields",
        ),
        pytest.param(
            ApiError(
                400,
                "BadRequest",
                "all in one",
                StatusDetails(
                    causes=(StatusCause(message="no tasks"), StatusCause(field="a", message="b"))
                ),
            ),
            "it:\n  no tasks\n  a: b",
            id="a webhook's",
        ),
        pytest.param(
            Forbidden(403, "Forbidden", "alice may not create jobs"),
            "not allowed: alice may not",
            id="rights",
        ),
    ],
)
def test_an_answer_is_explained_by_what_helps(error: Exception, words: str) -> None:
    assert words in explained(error)


@pytest.mark.parametrize("kind", ["queue", "namespace", "node", "hypernode"])
def test_an_object_without_a_namespace_is_sought_in_none(kind: str, golden: Golden) -> None:
    error = NotFound(404, "NotFound", "", StatusDetails(name="a", kind=f"{kind}s"))
    golden(explained(error))
