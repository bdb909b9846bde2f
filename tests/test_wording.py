"""Words that messages share."""

from qualms.wording import suggest


def test_nothing_is_suggested_when_nothing_is_close():
    assert suggest("dropout", ["swag", "laplace"]) == ""
    assert suggest("swg", ["swag", "laplace"]) == " Did you mean 'swag'?"
    assert suggest("sw", ["swag"], cutoff=0.9) == ""
