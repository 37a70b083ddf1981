"""What would help: asked about the gangs that wait, and printed behind the answer."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from shared.contracts.visibility_suggestions import SuggestedChange, SuggestionStatus
from shared.kube.errors import ApiError, KubeError, NotFound, TransportError
from tests.support.golden import Golden
from tests.tutti.why.situations import answer, gang
from tests.tutti.why.test_expected_starts import served
from tutti.api.output import report_data
from tutti.client.gangs import ApiNotServed
from tutti.why import command
from tutti.why.explanation import Answer
from tutti.why.planner_liveness import PlannerLiveness
from tutti.why.suggested_changes import suggestion_lines, with_suggestions

CHANGES = (
    SuggestedChange(kind="minimum", change="with a minimum of 2 members instead of 4"),
    SuggestedChange(kind="end", change="when ns/job/old ends"),
)
HELP = SuggestionStatus(suggestions=CHANGES)
NO_HELP = SuggestionStatus(sentence="no single change that was tried lets it start at once")


class Api:
    """In place of the API server: the statuses of gangs by name, or their failures."""

    def __init__(self, *, otherwise: SuggestionStatus = HELP, **gangs: Any) -> None:
        self.otherwise = otherwise
        self.gangs = gangs
        self.asked: list[str] = []
        self.is_served = True

    async def request(self, method: str, path: str, *, body: bytes = b"", **_: Any) -> Any:
        if method == "GET":
            name = path.rpartition("/")[2]
            if not self.is_served:
                raise NotFound(404, "", "404 page not found")
            assert path.endswith(f"/namespaces/ns/gangs/{name}")
            uid = "other" if self.gangs.get(name) == "other" else f"uid-{name}"
            return SimpleNamespace(body=_encode(served(name, uid=uid)))
        assert path.endswith("/namespaces/ns/suggestions")
        question = json.loads(body)
        name = question["spec"]["gang"]
        self.asked.append(name)
        status = self.gangs.get(name, self.otherwise)
        if isinstance(status, Exception):
            raise status
        return SimpleNamespace(body=json.dumps(question | {"status": report_data(status)}))


def _encode(obj: object) -> str:
    return json.dumps(report_data(obj))


def waiting(*names: str) -> Answer:
    return answer(groups=tuple(gang("Inqueue", "no room", name=name) for name in names))


async def with_help(api: Api, given: Answer) -> tuple[Answer, KubeError | None]:
    return await with_suggestions(api, given)  # type: ignore[arg-type]  # requests only


@pytest.mark.parametrize(
    ("api", "names"),
    [
        pytest.param(Api(), ("g",), id="changes"),
        pytest.param(Api(otherwise=NO_HELP), ("g",), id="no change"),
        pytest.param(Api(b=NO_HELP), ("a", "b"), id="several gangs"),
        pytest.param(Api(g="other"), ("g",), id="a group of another API has the name"),
        pytest.param(Api(), tuple("abcdefg"), id="more gangs than are asked about"),
    ],
)
async def test_the_changes_are_printed(api: Api, names: tuple[str, ...], golden: Golden) -> None:
    found, failure = await with_help(api, waiting(*names))
    assert failure is None
    golden("\n".join(suggestion_lines(found)))


async def test_gangs_that_do_not_wait_are_not_asked_about(golden: Golden) -> None:
    api = Api()
    found, _ = await with_help(api, answer(groups=(gang("Completed"),)))
    assert not api.asked
    golden("\n".join(suggestion_lines(found)))


async def test_at_most_five_gangs_are_asked_about() -> None:
    api = Api()
    await with_help(api, waiting(*"abcdefg"))
    assert sorted(api.asked) == list("abcde")


async def test_a_failure_leaves_the_other_answers() -> None:
    refused = ApiError(503, "ServiceUnavailable", "no standby planner answers")
    found, failure = await with_help(Api(a=refused), waiting("a", "b"))
    assert failure is refused
    assert [each.what_would_help for each in found.gangs] == [None, HELP]


async def test_where_the_api_is_not_served_the_answer_is_as_before() -> None:
    api, given = Api(), waiting("g")
    api.is_served = False
    found, failure = await with_help(api, given)
    assert found == given
    assert isinstance(failure, ApiNotServed)


def run_why(monkeypatch: pytest.MonkeyPatch, failure: KubeError | None, *flags: str) -> Result:
    """The command, with an answer of the API, or without."""
    given = replace(waiting("g"), planner=PlannerLiveness(state="alive"))

    async def explained(*_: object, with_help: bool) -> tuple[Answer, KubeError | None]:
        if not with_help:
            return given, None
        gangs = tuple(
            each if failure else replace(each, what_would_help=HELP) for each in given.gangs
        )
        return replace(given, gangs=gangs), failure

    monkeypatch.setattr(command, "_explain", explained)
    return CliRunner().invoke(command.why, ["podgroup/g", *flags], catch_exceptions=False)


def test_the_answer_as_data_has_the_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_why(monkeypatch, None, "--what-would-help", "-o", "json")
    assert result.exit_code == 0
    (found,) = json.loads(result.stdout)["gangs"]
    assert found["whatWouldHelp"] == {
        "suggestions": [{"kind": each.kind, "change": each.change} for each in CHANGES]
    }
    plain = run_why(monkeypatch, None, "-o", "json")
    assert "whatWouldHelp" not in plain.stdout


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(ApiNotServed("404 page not found"), id="the API is not served"),
        pytest.param(TransportError("refused"), id="there is no connection"),
    ],
)
def test_without_the_api_the_reason_is_printed_and_what_failed(
    monkeypatch: pytest.MonkeyPatch, failure: KubeError, golden: Golden
) -> None:
    result = run_why(monkeypatch, failure, "--what-would-help")
    assert result.exit_code == 2
    assert "podgroup/g waits" in result.stdout
    golden(result.stderr.strip())
