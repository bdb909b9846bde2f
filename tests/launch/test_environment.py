import json

import pytest

import qualms.training  # noqa: F401 - then the environment asks it
from qualms.launch._environment import environment


@pytest.mark.parametrize("device", ["cuda:31", "cuda:0,31", "gpu0"])
def test_a_device_that_is_not_there_is_left_to_training_to_name(device):
    stated = json.loads(environment(device, command=["qualms", "run"]))
    assert stated["command"] == ["qualms", "run"]
    assert stated["python"]
