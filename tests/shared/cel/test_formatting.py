"""The method `format` and the texts of doubles, as cel-go 0.26 writes them with version 2 of its
strings, which Kubernetes has (played with a small program of ours, 2026-11-28).
"""

import pytest

from shared.cel.expressions import compile_expression
from shared.cel.macros import Scope
from shared.cel.values import Budget, CelError, CostExceededError, Value


def evaluated(text: str, steps: int = 20_000) -> Value:
    return compile_expression(text, frozenset())(Scope({}, Budget(steps)))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'%s'.format(['a'])", "a"),
        ("'a %s b %d %% %s'.format(['x', 3, true])", "a x b 3 % true"),
        ("'%s'.format([1.5])", "1.5"),
        ("'%s'.format([1e30])", "1e+30"),
        ("'%s'.format([0.0000001])", "1e-07"),
        ("'%s'.format([100.0])", "100"),
        (
            "'%s'.format([[1, 2u, 'x\"y', 1.5, true, null, b'ab']])",
            '[1, 2, "x\\"y", 1.500000, true, null, b"ab"]',
        ),
        ("'%s'.format([{'b': 1, 'a': [1.25, 'q']}])", '{"a":[1.250000, "q"], "b":1}'),
        ("'%s'.format([{1: 'x', 2: 'y'}])", '{1:"x", 2:"y"}'),
        ("'%s'.format([null])", "null"),
        ("'%s'.format([type(1)])", "int"),
        ("'%s'.format([string])", "string"),
        ("'%s'.format([b'abc'])", "abc"),
        ("'%d'.format([12345678])", "12345678"),
        ("'%d'.format([-5])", "-5"),
        ("'%d'.format([7u])", "7"),
        ("'%f'.format([1234567.891])", "1,234,567.891000"),
        ("'%.3f'.format([1.2345])", "1.234"),
        ("'%.0f'.format([2.5])", "2"),
        ("'%.1f'.format([0.25])", "0.2"),
        ("'%f'.format([-0.5])", "-0.500000"),
        ("'%f'.format(['NaN'])", "NaN"),
        ("'%f'.format(['Infinity'])", "\u221e"),
        ("'%f'.format(['-Infinity'])", "-\u221e"),
        ("'%f'.format([double('Infinity')])", "\u221e"),
        ("'%e'.format([1052.032911275])", "1.052033\u202f\xd7\u202f10\u2070\xb3"),
        ("'%.3e'.format([1052.032911275])", "1.052033\u202f\xd7\u202f10\u2070\xb3"),
        ("'%.2e'.format([0.00012])", "1.200000\u202f\xd7\u202f10\u207b\u2070\u2074"),
        ("'%.0e'.format([15000.0])", "1.500000\u202f\xd7\u202f10\u2070\u2074"),
        ("'%e'.format([1e100])", "1.000000\u202f\xd7\u202f10\xb9\u2070\u2070"),
        ("'%e'.format([0.0])", "0.000000\u202f\xd7\u202f10\u2070\u2070"),
        ("'%e'.format(['NaN'])", "   NaN"),
        ("'%b'.format([5])", "101"),
        ("'%b'.format([-5])", "-101"),
        ("'%b'.format([true])", "1"),
        ("'%x'.format([255])", "ff"),
        ("'%X'.format([-255])", "-FF"),
        ("'%x'.format(['Hello'])", "48656c6c6f"),
        ("'%X'.format([b'\\xff\\x0a'])", "FF0A"),
        ("'%o'.format([8])", "10"),
        ("'%o'.format([-8])", "-10"),
        ("'%.2s'.format(['xyz'])", "xyz"),
        ("'%%'.format([])", "%"),
        (
            "'%s'.format([[double('NaN'), double('Infinity'), -double('Infinity')]])",
            '["NaN", "+Inf", "-Inf"]',
        ),
        (
            "'%s'.format([['tab\\there', 'uni\\u00e9', '\\u2028']])",
            '["tab\\there", "uni\xe9", "\\u2028"]',
        ),
        ("'%s'.format([dyn([]) ])", "[]"),
        ("'%s'.format([{}])", "{}"),
        ("'%.30f'.format([0.1])", "0.100000000000000005551115123126"),
        ("'%s'.format([-0.0])", "-0"),
        ("'%f'.format([-0.0])", "0.000000"),
        ("'%.2f'.format([999999.999])", "1,000,000.00"),
        ("'%e'.format(['Infinity'])", "     \u221e"),
        ("'%e'.format(['-Infinity'])", "    -\u221e"),
        ("'%.0f'.format([0.5])", "0"),
        ("'%f'.format([-0.0000001])", "-0.000000"),
        ("'%e'.format([-0.0])", "0.000000\u202f\xd7\u202f10\u2070\u2070"),
        ("'%e'.format([-1.5])", "-1.500000\u202f\xd7\u202f10\u2070\u2070"),
        ("'%f'.format([1e21])", "1,000,000,000,000,000,000,000.000000"),
        ("string(1000000.0)", "1e+06"),
        ("string(999999.0)", "999999"),
        ("string(123456.0)", "123456"),
        ("string(1234567.0)", "1.234567e+06"),
        ("string(100000.0)", "100000"),
        ("string(0.0001)", "0.0001"),
        ("string(0.00001)", "1e-05"),
        ("string(0.00012345)", "0.00012345"),
        ("string(1e20)", "1e+20"),
        ("string(-0.0)", "-0"),
        ("string(double('NaN'))", "NaN"),
        ("string(double('Infinity'))", "+Inf"),
        ("string(double('-Infinity'))", "-Inf"),
        ("string(1.7976931348623157e308)", "1.7976931348623157e+308"),
        ("string(3.0)", "3"),
        ("string(21.5)", "21.5"),
        ("'%s'.format([1234567.5])", "1.2345675e+06"),
        ("'%s'.format([['a\\x01b', 'del\\x7f']])", '["a\\x01b", "del\\x7f"]'),
        ("'%s'.format([['\\u00a0', '\\U0001F600']])", '["\\u00a0", "\U0001f600"]'),
        ("'%s'.format([['back\\\\', '\\a\\v']])", '["back\\\\", "\\a\\v"]'),
    ],
)
def test_a_text_is_written_as_cel_go_writes_it(expression: str, text: str) -> None:
    assert evaluated(expression) == text


@pytest.mark.parametrize(
    ("clause", "value"),
    [
        ("%d", "1.5"),
        ("%d", "'1'"),
        ("%.2f", "1"),
        ("%e", "1"),
        ("%x", "1.5"),
        ("%o", "true"),
        ("%b", "'1'"),
        ("%s", "b'\\xff'"),
        ("%s", "quantity('1')"),
        ("%q", "1"),
        ("%", "1"),
        ("%.f", "1.0"),
        ("%.9999f", "1.0"),
        ("%s %s", "1"),
    ],
)
def test_a_clause_refuses_what_it_cannot_write(clause: str, value: str) -> None:
    with pytest.raises(CelError):
        evaluated(f"'{clause}'.format([{value}])")


def test_what_it_writes_is_charged() -> None:
    with pytest.raises(CostExceededError):
        evaluated("'%.999f%.999f'.format([1.0, 1.0])", steps=150)
