import pytest

from services.binder.core.answers import (
    Answer,
    PodView,
    PostMeaning,
    ReadMeaning,
    conflict_text,
    meaning_of_post,
    meaning_of_read,
    meaning_of_removal,
)
from shared.contracts.decisions import Binding

BINDING = Binding(uid="u", namespace="team", name="w", node="n")
NO_DRY_RUN = 'admission webhook "w.example" does not support dry run'


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        pytest.param(Answer(201), "bound", id="written"),
        pytest.param(Answer(200), "bound", id="written, older servers"),
        pytest.param(Answer(404, "NotFound"), "gone", id="no such pod"),
        pytest.param(Answer(409, "Conflict", "already assigned"), "read", id="bound already"),
        pytest.param(Answer(409, "Conflict", "Precondition failed"), "read", id="another UID"),
        pytest.param(Answer(400, "BadRequest"), "refused", id="malformed"),
        pytest.param(Answer(403, "Forbidden"), "refused", id="RBAC or a webhook"),
        pytest.param(Answer(422, "Invalid"), "refused", id="invalid"),
        pytest.param(Answer(405), "refused", id="any other 4xx"),
        pytest.param(Answer(307), "refused", id="a redirection leads to an unknown server"),
        pytest.param(Answer(401, "Unauthorized"), "again", id="token just expired"),
        pytest.param(Answer(408), "again", id="request timeout"),
        pytest.param(Answer(429, "TooManyRequests"), "again", id="load shed"),
        pytest.param(Answer(500, "InternalError"), "again", id="internal error"),
        pytest.param(Answer(503), "again", id="unavailable"),
        pytest.param(Answer(504, "Timeout"), "again", id="etcd timed out"),
        pytest.param(Answer(0, "ConnectionLost"), "again", id="nothing came back"),
    ],
)
def test_every_answer_to_a_binding_has_one_meaning(answer: Answer, meaning: PostMeaning) -> None:
    assert meaning_of_post(answer, dry_run=False) == meaning
    assert meaning_of_post(answer, dry_run=True) == meaning


def test_a_webhook_without_dry_run_support_leaves_the_dry_run_untested() -> None:
    assert meaning_of_post(Answer(400, "BadRequest", NO_DRY_RUN), dry_run=True) == "untested"


def test_the_same_words_in_answer_to_a_real_binding_are_a_refusal() -> None:
    assert meaning_of_post(Answer(400, "BadRequest", NO_DRY_RUN), dry_run=False) == "refused"


@pytest.mark.parametrize(
    ("view", "meaning", "text"),
    [
        pytest.param(PodView("u", "n"), "bound", "", id="on the node decided"),
        pytest.param(PodView("u", "n", deleting=True), "bound", "", id="there, and being deleted"),
        pytest.param(None, "gone", "", id="no such pod"),
        pytest.param(PodView("u", "m"), "conflict", '"m"', id="on another node"),
        pytest.param(PodView("v", "n"), "conflict", "re-created", id="another pod of that name"),
        pytest.param(PodView("u", deleting=True), "conflict", "deleted", id="being deleted"),
        pytest.param(PodView("u", gated=True), "conflict", "gates", id="gated"),
        pytest.param(PodView("u"), "free", "", id="still unbound"),
    ],
)
def test_what_a_read_of_the_pod_means(
    view: PodView | None, meaning: ReadMeaning, text: str
) -> None:
    assert meaning_of_read(view, BINDING) == meaning
    if view is not None and meaning == "conflict":
        assert text in conflict_text(view, BINDING)


def test_an_invalid_deletion_is_refused_and_only_an_invalid_mark_is_read() -> None:
    invalid = Answer(422, "Invalid", "metadata.uid: field is immutable")
    assert meaning_of_removal(invalid, patch=True) == "read"
    assert meaning_of_removal(invalid, patch=False) == "refused"
