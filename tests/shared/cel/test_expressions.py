"""Expressions have the results that the specification of CEL and Kubernetes' libraries define."""

import pytest

from shared.cel.expressions import UnsupportedExpressionError, compile_expression
from shared.cel.macros import Scope
from shared.cel.values import Budget, CelError, CostExceededError, Value


def evaluated(text: str, steps: int = 20_000) -> Value:
    return compile_expression(text, frozenset())(Scope({}, Budget(steps)))


@pytest.mark.parametrize(
    "text",
    [
        # Operators and precedence.
        "1 + 2 * 3 == 7",
        "-7 / 2 == -3",
        "-7 % 2 == -1",
        "7u / 2u == 3u",
        "1.5 + 1.5 == 3.0",
        "'a' + 'b' == 'ab'",
        "[1] + [2] == [1, 2]",
        "true ? true : false",
        "1 == 1.0 && 1u == 1",
        "!(1 == '1')",
        "2 in [1, 2] && !('c' in {'a': 1})",
        "0x10 == 16 && r'\\d' == '\\\\d' && '\\u0041' == 'A'",
        "b'ab'.size() == 2 && 'äö'.size() == 2",
        "null == null",
        "type(1) == int && type('') == string && type(quantity('1')) != int",
        "{'a': {'b': [1, 2]}}.a.b[1] == 2",
        # Errors that another operand makes irrelevant.
        "1 / 0 == 1 || true",
        "!(1 / 0 == 1 && false)",
        "[0, 1].exists(x, 1 / x == 1)",
        "![0, 2].all(x, 1 / x == 1)",
        # Macros.
        "[1, 2, 3].all(x, x > 0) && [1, 2, 3].exists_one(x, x > 2)",
        "[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6]",
        "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]",
        "has({'a': 1}.a) && !has({'a': 1}.b)",
        "cel.bind(x, 2, cel.bind(y, x * x, x + y == 6))",
        "[3, 1, 2].sortBy(x, -x) == [3, 2, 1]",
        # Conversions.
        "int('7') == 7 && int(7.9) == 7 && string(7) == '7' && double('1.5') == 1.5",
        "bool('true') && uint(3) == 3u && bytes('a') == b'a' && dyn(1) == 1",
        # Strings.
        "'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo')",
        "'hello'.charAt(4) == 'o' && 'hello'.charAt(5) == ''",
        "'hello'.indexOf('l') == 2 && 'hello'.lastIndexOf('l') == 3",
        "'hello'.indexOf('l', 3) == 3 && 'hello'.indexOf('x') == -1",
        "'TacoCÆt'.lowerAscii() == 'tacocÆt' && 'a'.upperAscii() == 'A'",
        "'hello hello'.replace('he', 'we', 1) == 'wello hello'",
        "'a b c'.split(' ') == ['a', 'b', 'c'] && 'a b c'.split(' ', 2) == ['a', 'b c']",
        "'hello'.substring(1) == 'ello' && 'hello'.substring(1, 3) == 'el'",
        "' a '.trim() == 'a' && ['a', 'b'].join('-') == 'a-b'",
        "strings.quote('a\"b\\\\\\n') == r'\"a\\\"b\\\\\\n\"'",
        # Optional values.
        "{'a': 1}.?a == optional.of(1) && {'a': 1}.?b == optional.none()",
        "{'a': 1}[?'a'].value() == 1 && !{'a': 1}[? 'b'].hasValue()",
        "[1, 2][?1] == optional.of(2) && ![1][?1].hasValue() && ![1][?-1].hasValue()",
        "{'a': {'b': 1}}.?a.b.orValue(2) == 1 && {'a': {'b': 1}}.?x.b.orValue(2) == 2",
        "{'a': {'b': 1}}.?a.c.orValue(2) == 2 && {'a': {'b': 1}}.?a['b'].orValue(2) == 1",
        "has({'a': {'b': 1}}.?a.b) && !has({'a': {'b': 1}}.?x.b)",
        "{'a': 1}.?a.orValue(1 / 0) == 1 && {'a': 1}.?b.or(optional.of(3)) == optional.of(3)",
        "{'a': 2}.?a.optMap(x, x * 2).value() == 4 && !{}.?a.optMap(x, 1 / 0).hasValue()",
        "{'a': {'b': 1}}.?a.optFlatMap(x, x.?b).value() == 1",
        "optional.ofNonZeroValue('') == optional.none() && optional.ofNonZeroValue([0]).hasValue()",
        "'a.?b' + \"[?'x']\" == 'a.?b[?\\'x\\']' && '''.?''' == r'.?' // .?",
        "(true ? [1] : [2]) == [1] && (false ?[1]:[2]) == [2]",
        # Regular expressions.
        "'NVIDIA H100 80GB'.matches('H[0-9]+') && !'abc'.matches('^b')",
        "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]') == ''",
        "'1 2 3'.findAll('[0-9]') == ['1', '2', '3'] && '1 2'.findAll('[0-9]', 1) == ['1']",
        # Lists and sets.
        "[1, 2].isSorted() && ![2, 1].isSorted()",
        "[1, 2].sum() == 3 && [3, 1].min() == 1 && [3, 1].max() == 3",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2",
        "[1, 1, 2].distinct() == [1, 2] && [[1], [2]].flatten() == [1, 2]",
        "[1, 2, 3].slice(1, 2) == [2] && [2, 1].sort() == [1, 2] && lists.range(2) == [0, 1]",
        "sets.contains([1, 2], [1]) && sets.intersects([1], [1, 2])",
        "sets.equivalent([1, 2], [2, 1, 1]) && ['a'].includes('a') && 'a'.includes('a')",
        # Quantities.
        "quantity('1Gi') == quantity('1024Mi') && quantity('-1').sign() == -1",
        "quantity('200M').compareTo(quantity('0.2G')) == 0",
        "quantity('50k').isLessThan(quantity('50Ki'))",
        "quantity('2').isGreaterThan(quantity('1'))",
        "isQuantity('1.5Gi') && !isQuantity('1.5Gj')",
        "quantity('50k').add(quantity('1')).asInteger() == 50001",
        "quantity('2').sub(1).isInteger()",
        "!quantity('50m').isInteger() && quantity('50m').asApproximateFloat() == 0.05",
        # Versions.
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2",
        "semver('1.2.3').patch() == 3 && semver('1.2.3') == semver('1.2.3+build')",
        "semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.10'))",
        "semver('1.0.0-alpha').isLessThan(semver('1.0.0'))",
        "semver('v01.2', true).compareTo(semver('1.2.0')) == 0",
        "isSemver('1.0.0') && !isSemver('v1.0.0') && isSemver('v1', true)",
    ],
)
def test_an_expression_is_true(text: str) -> None:
    assert evaluated(text) is True


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("1 / 0 == 1", "division by zero"),
        ("9223372036854775807 + 1 == 0", "integer overflow"),
        ("1 + 1.0 == 2.0", "no such overload"),
        ("{'a': 1}.b == 1", "no such key: b"),
        ("[1][1] == 1", "index out of bounds: 1"),
        ("1 < 'a'", "no such overload"),
        ("(1).exists(x, true)", "expected iterable type"),
        ("'a'.matches('(')", "no regular expression"),
        ("quantity('x') == quantity('1')", "no quantity"),
        ("semver('1') == semver('1.0.0')", "no semantic version"),
        ("[].max() == 1", "max called on empty list"),
        ("'abc'.substring(4) == ''", "index out of range"),
        ("true && 1 == 1 && [1][2] == 1", "index out of bounds"),
        ("{'a': 1}[{}] == 1", "no such overload"),
    ],
)
def test_an_evaluation_fails_with_its_cause(text: str, cause: str) -> None:
    with pytest.raises(CelError, match=cause):
        evaluated(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unexpected syntax"),
        ("?!", "unexpected syntax at 1:1"),
        ("1 +\n * 2", "unexpected syntax at 2:2"),
        ("devise.driver == ''", "undeclared reference to 'devise' at 1:1"),
        ("true && duration('1s') == duration('1s')", "function duration is not supported at 1:9"),
        ("[1, ?optional.of(1)].size() == 1", "unexpected syntax at 1:5"),
        ("1 == 1 &&\n  [?optional.of(1)].size() == 1", "optional element is not supported at 2:4"),
        ("{'a': 1}[?('a')] == 1", "an optional element is not supported at 1:10"),
        ("has({'a': 1}.?a)", "has() takes one field selection at 1:1"),
        ("has(true)", "has() takes one field selection"),
        ("99999999999999999999 > 1", "out of range"),
        ("[1].map(x, y)", "undeclared reference to 'y'"),
        ("'a'.size(1, 2) == 1", "does not take 3 arguments"),
        ("(" * 100 + "1" + ")" * 100 + " == 1" + " + (1" * 100 + ")" * 100, "levels"),
        ("true" + " && true" * 2_000, "more than 10240 characters"),
    ],
)
def test_what_is_not_supported_is_named_with_its_position(text: str, message: str) -> None:
    with pytest.raises(UnsupportedExpressionError) as caught:
        compile_expression(text, frozenset({"device"}))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(1000000).all(x, true)",
        # A list that contains the same list many times is compared element by element.
        "cel.bind(a, [1,1,1,1,1,1,1,1,1,1], cel.bind(b, [a,a,a,a,a,a,a,a,a,a], "
        "cel.bind(c, [b,b,b,b,b,b,b,b,b,b], cel.bind(d, [c,c,c,c,c,c,c,c,c,c], "
        "cel.bind(e, [d,d,d,d,d,d,d,d,d,d], cel.bind(f, [e,e,e,e,e,e,e,e,e,e], f == f))))))",
        "cel.bind(a, lists.range(200), a == a && a == a && a == a && a == a)",
        "lists.range(50).distinct().size() > 0",
        "lists.range(200).sortBy(x, -x).size() > 0 && lists.range(100).sort().size() > 0",
        "cel.bind(a, lists.range(100), a.all(x, a.indexOf(x) + a.lastIndexOf(x) >= 0))",
        # A pattern that is too large is refused only after much work, and a failure ends nothing.
        r"lists.range(9).all(x, 'a'.matches('(\\pL{30}){30}'))",
        "lists.range(9).exists(x, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'"
        ".matches('((a{30}){30})'))",
        "cel.bind(a, 'xxxxxxxxxx'.replace('', 'xxxxxxxxxxxxxxxxxxxxxxxx'), lists.range(60).all(x, "
        "!isSemver(a) && size(bytes(a)) > 0))",
        "lists.range(99).all(x, lists.range(99).all(y, lists.range(99).all(z, true)))",
        "cel.bind(a, 'xxxxxxxxxx', cel.bind(b, a.replace('', a), cel.bind(c, b.replace('', b), "
        "c.replace('', c).size() > 0)))",
    ],
)
def test_an_expensive_expression_ends_at_its_budget(text: str) -> None:
    with pytest.raises(CostExceededError):
        evaluated(text, 1_000)
