"""dmlsplit.logs.fragments: no line that an expression matches is skipped because of its fragments."""

from __future__ import annotations

import io
import itertools
import re
from re import _constants as codes
from re import _parser as parser

import pytest

from dmlsplit.logs import reading
from dmlsplit.logs.fragments import Lines, fragments_of, has_one
from dmlsplit.logs.messages import MESSAGES

EXPRESSIONS = [
    *(message.pattern for message in MESSAGES if message.pattern),
    *(pattern.pattern for lines in (reading._ERRORS, reading._IN_WORDS) for pattern, _ in lines._patterns),
]


@pytest.mark.parametrize(
    ("pattern", "fragments"),
    [
        ("Protobuf parsing failed", ("protobuf parsing failed",)),
        (r"TensorValidator\.(?:cpp|h)\(\d+\)|out of memory", ("tensorvalidator.", "out of memory")),
        (r"(?i)but got: ?device|type [xy]", ("but got:", "type ")),
        (r"a+bcd?e", ("bc",)),
        (r"ab{2}cd{0,3}efg", ("efg",)),
        (r"ab{,3}c", ("a",)),
        (r"\d+\s|x", ("", "x")),
        (r"(?:one|two) three", (" three",)),
        (r"[^]|]{2}abc|def[|]", ("abc", "def")),
        ("", ("",)),
    ],
)
def test_fragments(pattern, fragments):
    assert fragments_of(pattern) == fragments


def samples(parsed):
    """Texts that a parsed expression matches: with each alternative, with the fewest repetitions and one more."""
    choices = []
    for operator, argument in parsed:
        match operator:
            case codes.LITERAL:
                choices.append([chr(argument)])
            case codes.BRANCH:
                choices.append([each for branch in argument[1] for each in samples(branch)])
            case codes.SUBPATTERN:
                choices.append(list(samples(argument[-1])))
            case codes.MAX_REPEAT | codes.MIN_REPEAT | codes.POSSESSIVE_REPEAT:
                least, most, inner = argument
                once = list(samples(inner))
                choices.append([each * n for n in range(least, min(most, least + 1) + 1) for each in once])
            case codes.IN | codes.ANY | codes.NOT_LITERAL:
                choices.append([c for c in "7 aEp/'" if takes(operator, argument, c)][:1])
            case codes.AT | codes.ASSERT | codes.ASSERT_NOT:
                pass
            case _:
                raise NotImplementedError(operator)
    for parts in itertools.islice(itertools.product(*choices), 400):
        yield "".join(parts)


def takes(operator, argument, character):
    if operator is not codes.IN:
        return operator is codes.ANY or argument != ord(character)
    negated = argument[0][0] is codes.NEGATE
    return negated != any(
        (of == codes.LITERAL and value == ord(character))
        or (of == codes.RANGE and value[0] <= ord(character) <= value[1])
        or (of == codes.CATEGORY and re.match(CATEGORIES[value], character) is not None)
        for of, value in argument[negated:]
    )


CATEGORIES = {
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
}


@pytest.mark.parametrize("pattern", EXPRESSIONS, ids=lambda pattern: pattern[:40])
def test_what_an_expression_matches_has_a_fragment(pattern):
    fragments, matched = fragments_of(pattern), 0
    for text in samples(parser.parse(pattern)):
        for line in (text, f"x {text} y", text.upper(), text.swapcase()):
            if re.search(pattern, line):
                matched += 1
                assert has_one(fragments, line.lower()), line
    assert matched


def test_a_line_is_searched_only_by_expressions_whose_fragment_it_has():
    searched = []

    class Pattern:
        def __init__(self, pattern):
            self.pattern = pattern

        def search(self, text):
            searched.append(self.pattern)
            return re.search(self.pattern, text)

    lines = Lines([Pattern("abc[0-9]"), Pattern("(?i)def|ghi")])
    assert not lines.matches("xyz", "xyz")
    assert searched == []
    assert lines.matches("DEF", "def")
    assert searched == ["(?i)def|ghi"]


def test_usual_lines_are_searched_for_nothing():
    """Each of 50 expressions was searched for in each line."""
    usual = (
        "2026-01-01 12:00:00.12 [I:onnxruntime:, session_state.cc:1136 onnxruntime::Verify] Initializing 12 kernels",
        "2026-01-01 12:00:01 INFO worker[7]: processed 12 images in 3.4 ms, mean latency 0.28 ms",
        "  12: conv1_weight float32 [64, 3, 7, 7] ok",
    )
    for line in usual:
        assert not reading._BY_TEXT.may_match(line.lower())
        assert not reading._IN_WORDS.may_match(line.lower())
    assert not reading.read(io.BytesIO("\n".join(usual).encode())).findings
