"""From the planner's suggestions to the status of a Suggestion, with what its user may see."""

from typing import Final

from shared.contracts.questions import SuggestionsAnswer
from shared.contracts.visibility_suggestions import SuggestedChange, SuggestionStatus

NOT_WAITING: Final = "it does not wait for capacity"
NODES_HIDDEN: Final = "more nodes would help; which ones is shown to users who may list nodes"


def suggestion_status(answer: SuggestionsAnswer | None, *, sees_nodes: bool) -> SuggestionStatus:
    """The status for a user who may list nodes, or may not; None: the gang does not wait."""
    if answer is None:
        return SuggestionStatus(sentence=NOT_WAITING)
    shown = tuple(
        SuggestedChange(kind=each.kind, change=each.change)
        for each in answer.suggestions
        # Its words have the name and the size of a node.
        if sees_nodes or each.kind != "nodes"
    )
    hidden = len(shown) < len(answer.suggestions)
    sentence = NODES_HIDDEN if hidden and not shown else answer.sentence
    return SuggestionStatus(suggestions=shown, sentence=sentence)
