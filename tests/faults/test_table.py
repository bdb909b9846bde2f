"""The table of faults, as `make faults` prints it."""

from bench.faults import PAGE, Fault, page_of, plain


def test_a_sentence_does_not_depend_on_the_machine():
    sentence = (
        "cannot write to /tmp/pytest-of-me/pytest-7/test_0/disk/toy/0123456789abcdef:"
        " the checksum of .qualms-vm-1-0123456789abcdef0123456789abcdef/data differs"
    )
    assert plain(sentence) == (
        "cannot write to disk/toy/HASH: the checksum of archive/data differs"
    )


def test_a_table_has_a_row_for_each_fault():
    fault = Fault(fault="a | b", happens="c", sentence="d", lost="none")
    assert page_of([fault]).endswith("|---|---|---|---|\n| a \\| b | c | d | none |\n")


def test_the_page_has_every_fault_once():
    rows = [row for row in PAGE.read_text().splitlines() if row.startswith("| ")][1:]
    assert all(row.replace("\\|", "").count("|") == 5 for row in rows)
    names = [row.split(" | ")[0] for row in rows]
    assert len(set(names)) == len(names) >= 16
