"""Damaged files of other programs are read or refused; nothing else happens.

`QUALMS_FUZZ=50000` makes as many calls as bench/foreign_files.py does.
"""

import os

import numpy as np
from bench.foreign_files import call, whole_files

from qualms.predictions import read

EXAMPLES = int(os.environ.get("QUALMS_FUZZ", "80"))


def test_damaged_files_of_other_programs_are_read_or_refused(tmp_path):
    sources = whole_files(tmp_path)
    for source in sources:
        assert read(source).n
    answers = set()
    for number in range(EXAMPLES):
        rng = np.random.default_rng([0, number])
        answers.add(call(sources[number % len(sources)], rng))
    assert answers == {"read", "refused"}
