"""The table of faults, as `make faults` prints it."""

from bench.faults import FAULTS, PAGE, page_of, plain


def test_a_sentence_does_not_depend_on_the_machine():
    sentence = (
        "cannot write to /tmp/pytest-of-me/pytest-7/test_0/disk/toy/0123456789abcdef:"
        " the checksum of .qualms-vm-1-0123456789abcdef0123456789abcdef/data differs"
    )
    assert plain(sentence) == (
        "cannot write to disk/toy/HASH: the checksum of archive/data differs"
    )


def test_a_table_has_a_row_for_each_sentence():
    page = page_of({"disk full": "a | b"})
    fault = FAULTS["disk full"]
    row = f"| disk full | {fault.happens} | a \\| b | {fault.lost} |"
    assert page.endswith(f"|---|---|---|---|\n{row}\n")


def test_the_page_has_every_fault():
    page = PAGE.read_text()
    rows = [row for row in page.splitlines() if row.startswith("| ")][1:]
    cells = [row.removeprefix("| ").split(" | ") for row in rows]
    assert page == page_of({row[0]: row[2].replace("\\|", "|") for row in cells})
    assert [row[0] for row in cells] == list(FAULTS)
