"""A user's mistake is answered with a sentence, and docs/mistakes.md says which."""

import re

from bench import mistakes

REMEDY = re.compile(
    r"must|expected|need|cannot|only|Did you mean|Possible options|Known: |there is no"
    r"|should be|Missing|leave|It has |[Nn]ame |Rename|; |score 'mine': "
)
"""What must hold, or what to do."""


def faults(mistake, answer):
    """What is wrong with an answer."""
    text = " ".join(answer.text.split())
    if answer.error:
        yield f"{answer.error} is no sentence for users"
    if answer.status != mistake.expected_status:
        yield f"status {answer.status} instead of {mistake.expected_status}"
    if not mistake.says or mistake.says not in text:
        yield f"{mistake.says!r} is not said"
    if re.search(r"Traceback|object at 0x|<_io", text) or not text.isprintable():
        yield "not in words"
    if mistake.kind == "refused" and not (
        20 < len(text) < 4_100 and REMEDY.search(text)
    ):
        yield "no remedy in a sentence"


def test_every_mistake_is_answered_with_a_sentence_and_the_page_is_current():
    """All at once: together they take a few seconds, most of it for torch."""
    answered = mistakes.answered()
    every = [each for part in answered.values() for each in part]
    assert [
        (mistake.what, fault, answer.text)
        for mistake, answer in every
        for fault in faults(mistake, answer)
    ] == []
    assert len(every) >= 100
    assert min(map(len, answered.values())) > 10
    page = mistakes.PAGE.read_text(encoding="utf-8")
    assert page == mistakes.page_of(answered), "python bench/mistakes.py --write"
    assert not re.search(r"/tmp|/home|/work|[A-Z]:\\Users", page)


def test_an_answer_that_is_no_sentence_would_be_seen():
    def broken():
        raise TypeError("f() takes 1 positional argument but 2 were given")

    mistake = mistakes.Mistake(
        what="calls a function", do=broken, kind="refused", says="must"
    )
    found = list(faults(mistake, mistakes.answer_to(mistake)))
    assert found == [
        "TypeError is no sentence for users",
        "'must' is not said",
        "no remedy in a sentence",
    ]
