"""Outputs of commands are compared with the pages; only text that varies may differ."""

from pathlib import Path

import pytest

from tests.documents.blocks import Block, Command, blocks
from tests.documents.playing import OutputDiffers, Session, matches

PAGE = """# A page

<!-- file: a.txt -->
```yaml
a: 1
```

<!-- run: certify -->
```console
$ cat a.txt   # a comment
a: 1
$ echo one; \\
  echo two
one
two
```

```
$ make tea
```

```yaml
make: believe
```
"""


@pytest.fixture
def found() -> list[Block]:
    return list(blocks("a.md", PAGE))


def test_blocks_have_their_marks_and_commands(found: list[Block]) -> None:
    assert [(one.line, one.what, one.detail, one.typed) for one in found] == [
        (3, "file", "a.txt", False),
        (8, "run", "certify", True),
        (18, "", "", True),
        (22, "", "", False),
    ]
    assert found[1].commands() == [
        Command("cat a.txt   # a comment", "a: 1\n"),
        Command("echo one; \\\n  echo two", "one\ntwo\n"),
    ]


def test_without_prompts_every_line_that_is_a_command_is_run() -> None:
    (block,) = blocks("a.md", "```\nmake a   # b\nmake: c\npython -m d\n```\n")
    assert [one.typed for one in block.commands()] == ["make a   # b", "python -m d"]


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        ("ready in 2.1 s on 127.0.0.1:1", "ready in 12 s on 127.0.0.1:40001\n"),
        ("a  b\nc", "a b c"),
        ("one\n…\nthree", "one\ntwo\nand a half\nthree"),
        (
            "gang-889632de-3f5c-4be9-a1f2-0123456789ab since 2026-11-21T23:26:27Z",
            "gang-00000000-3f5c-4be9-a1f2-0123456789ab since 2026-01-01T00:00:00Z",
        ),
    ],
)
def test_times_ports_and_uids_may_differ(expected: str, output: str) -> None:
    assert matches(expected, output)


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        ("2 of 4 members", "3 of 4 members"),
        ("one", "one more"),
        ("", "something"),
        ("one … three", "one two four"),
        ("node-1", "node-2"),
    ],
)
def test_any_other_text_must_be_the_same(expected: str, output: str) -> None:
    assert not matches(expected, output)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path, kubectl=Path("/bin/false"))


def test_commands_of_a_page_run_in_order_in_one_folder(
    session: Session, found: list[Block]
) -> None:
    with session:
        session.play(found[:2])


def test_a_command_with_another_output_is_named(session: Session) -> None:
    text = "```console\n$ echo three\nfour\n```\n"
    with session, pytest.raises(OutputDiffers, match=r"(?s)a\.md:1: \$ echo three.*four.*three"):
        session.play(list(blocks("a.md", text)))


def test_a_command_without_output_on_the_page_must_succeed(session: Session) -> None:
    with session:
        session.type(Command("echo anything", ""))
        with pytest.raises(OutputDiffers, match="status 3"):
            session.type(Command("exit 3", ""))


def test_background_commands_end_with_the_session(session: Session) -> None:
    with session:
        session.type(Command("export PLACE=$PWD/x", ""))
        session.type(Command("bash -c 'echo $PLACE; exec sleep 60' &", "…/x"))
        ((process, _),) = session.background
        assert process.poll() is None
    assert process.returncode == -15


def test_a_background_command_that_ends_is_reported(session: Session) -> None:
    with session, pytest.raises(OutputDiffers, match="no such thing"):
        session.type(Command("bash -c 'echo no such thing' &", "ready"))
