"""YAML with bounds: what is refused, what still works, and that nothing else loads YAML."""

import contextlib
import json
import re
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.yaml_documents import InvalidYaml, read_document, read_documents

_ROOT = Path(__file__).parents[2]


def _bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        pytest.param(_bomb(9), "line 5: aliases must stand for at most 100000 values", id="bomb"),
        pytest.param(
            "a0: &a0 {x: 1}\n"
            + "".join(f"a{n}: &a{n} {{<<: [{f'*a{n - 1}, ' * 9}]}}\n" for n in range(1, 9)),
            "aliases must stand for at most 100000 values",
            id="merge keys",
        ),
        pytest.param(
            f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 50)}]",
            "line 2: aliases must stand for at most 4194304 characters",
            id="a long text repeated",
        ),
        pytest.param(
            "---\n".join(f"a: &a [{'1, ' * 1000}]\nb: [{'*a, ' * 20}]\n" for _ in range(9)),
            "aliases must stand for at most 100000 values",
            id="in many documents",
        ),
        pytest.param("a: &a\n  b: *a", "line 2: the anchor a must not contain itself", id="cycle"),
        pytest.param("[" * 100_000, "line 1: values must be nested in at most 200", id="deep flow"),
        pytest.param("- " * 100_000, "line 1: values must be nested in at most 200", id="deep"),
        pytest.param(
            f'a: !!int "1{":1" * 200_000}"', "line 1: a number must have", id="base 60, by its tag"
        ),
        pytest.param("a: " + "9" * 100_000, "does not fit its type", id="digits"),
        pytest.param('a: !!int ""', "does not fit its type", id="an empty number"),
        pytest.param("a: !!bool x", "does not fit its type", id="no boolean"),
        pytest.param("a: !!timestamp x", "does not fit its type", id="no time"),
        pytest.param("a: 1\n? ~\n: x", "column 1: a key must be text, and is None", id="no key"),
        pytest.param("? !!binary eA==\n: x", "a key must be text, and is b'x'", id="bytes as key"),
        pytest.param("a: *b", "undefined alias", id="unknown alias"),
        pytest.param("a: !!python/object:os.system x", "could not determine", id="foreign tag"),
    ],
)
def test_a_hostile_text_is_refused_at_once_with_line_and_rule(text: str, rule: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidYaml, match=re.escape(rule)):
        read_documents(text)
    assert time.process_time() - began < 1.0


def test_anchors_that_are_reused_and_merged_still_work() -> None:
    text = "a: &a {image: x, cpu: 1}\nb: [*a, *a, *a]\nc: {<<: *a, cpu: 2}\n"
    assert read_document(text) == {
        "a": {"image": "x", "cpu": 1},
        "b": [{"image": "x", "cpu": 1}] * 3,
        "c": {"image": "x", "cpu": 2},
    }


def test_as_many_aliases_as_the_bound_allows_are_read() -> None:
    text = f"a: &a [{'x, ' * 98}]\nb: [{'*a, ' * 1000}]"
    assert len(read_document(text)["b"]) == 1000


def test_long_texts_that_are_no_numbers_are_read() -> None:
    data = "0123456789abcdef" * 1000
    assert read_document(f"a: {data}\nb: '1{':1' * 1000}'")["a"] == data


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{on: 1, 5: a, 1.5: b, ~x: c}", {"true": 1, "5": "a", "1.5": "b", "~x": "c"}),
        ("[2024-01-01, 2024-99-99, 2024-01-01T00:00:00Z]", None),
        ("[12:30, 1:30.5, 22:22:22, =, .inf, -.Inf, .nan]", None),
        (
            "[0x1F, 010, 0b11, 1_000, -5, 0, 1.5, .5, 1.0e+3]",
            [31, 8, 3, 1000, -5, 0, 1.5, 0.5, 1e3],
        ),
    ],
    ids=["keys", "dates", "clock times and infinity", "numbers"],
)
def test_what_is_read_is_json_and_what_kubectl_reads(text: str, found: object) -> None:
    read = read_document(text)
    assert read == (text.strip("[]").split(", ") if found is None else found)
    assert json.loads(msgspec.json.encode(read)) == read


def test_a_number_to_the_base_60_is_a_text_of_any_length() -> None:
    assert read_document("a: 1" + ":1" * 200_000)["a"] == "1" + ":1" * 200_000


def test_several_documents_and_empty_ones_are_kept_apart() -> None:
    assert read_documents("a: 1\n---\n---\nb: 2\n") == [{"a": 1}, None, {"b": 2}]
    assert read_document("") is None
    with pytest.raises(InvalidYaml, match="must be one document, and has 2"):
        read_document(b"a: 1\n---\nb: 2")


_PARTS = st.sampled_from(
    [
        *("a", ": ", "\n", "  ", "- ", "[", "]", "{", "}", ", ", "&x ", "*x", "<<: ", "? ", "| "),
        *("!!int ", "!!bool ", "!!timestamp ", "!!float ", "!!binary ", "!!set ", "!!omap "),
        *("'", '"', "1:2", "0x", "2024-1-99", "---\n", "...", "\x00", "\ud800", "é", "#"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_PARTS, max_size=30).map("".join))
def test_no_text_raises_anything_else(text: str) -> None:
    with contextlib.suppress(InvalidYaml):
        read_documents(text)


def test_nothing_else_in_the_product_loads_yaml() -> None:
    loads = re.compile(r"yaml\.(safe_|full_|unsafe_)?load|yaml\.(compose|parse)\b|import safe_load")
    found = {
        str(path.relative_to(_ROOT))
        for folder in ("services", "shared", "tutti")
        for path in (_ROOT / folder).rglob("*.py")
        if loads.search(path.read_text("utf-8"))
    }
    assert found == {"shared/yaml_documents.py"}
