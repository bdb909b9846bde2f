import pytest

from qualms.training.options import training


def test_an_unknown_option_is_answered_with_the_closest():
    with pytest.raises(LookupError, match=r"no training option 'epoch'.*'epochs'"):
        training({"epoch": 3})


def test_lists_become_tuples_as_a_spec_read_from_json_has_lists():
    made = training({"augment": ["hflip"], "sinks": []})
    assert made.preprocessing.augment == ("hflip",)
    assert made == training({"augment": ("hflip",)})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("epochs", -1, "a whole number from 0 on"),
        ("epochs", 2.5, "a whole number from 0 on"),
        ("epochs", True, "a whole number from 0 on"),
        ("epoch_passes", 0, "a whole number from 1 on"),
        ("loss", "dice", "one of likelihood, dice_likelihood"),
        ("lr", -1.0, "a number, at least 0"),
        ("momentum", 1.5, "a number, 0 to 1"),
        ("optimiser", "adamw", "one of adam, sgd, rmsprop, lamb"),
        ("precision", "int8", "one of float32, tf32, bf16, fp16"),
        ("augment", ("swirl",), "a list of hflip, flips, rotate, zoom, noise, byte"),
        ("compile", 1, "true or false"),
        ("class_weights", "constant", "one of none, minibatch"),
        ("select_by", "val_acc", "one of last, val_loss, val_auroc, val_referral"),
        ("partial", "no", "true or false"),
        ("capture", "yes", "true, false or 'auto'"),
    ],
)
def test_a_wrong_value_is_refused_in_a_sentence(name, value, told):
    with pytest.raises(ValueError, match=f"training option '{name}' must be {told}"):
        training({name: value})
