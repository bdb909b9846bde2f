"""Weights of timm's networks from files."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from qualms.methods.map import map as plain
from qualms.networks import IMAGENET, make_network, network_colours
from qualms.spec import Part, Task

NAME = "mobilenetv3_small_050"


def network(**options):
    return make_network(Part(name=NAME, options=options), channels=3).eval()


@pytest.fixture(scope="module")
def whole():
    """A trained network of timm, with its classifier."""
    import timm

    torch.manual_seed(1)
    made = timm.create_model(NAME, num_classes=7).eval()
    for layer in made.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2)
    return made


def features(made):
    with torch.no_grad():
        return made(torch.linspace(-1, 1, 2 * 3 * 32 * 32).view(2, 3, 32, 32))


def check(made, whole):
    with torch.no_grad():
        x = torch.linspace(-1, 1, 2 * 3 * 32 * 32).view(2, 3, 32, 32)
        wanted = whole.forward_head(whole.forward_features(x), pre_logits=True)
    torch.testing.assert_close(features(made), wanted)
    assert torch.equal(made.classifier.weight, whole.get_classifier().weight)
    head = plain().build(made, Task(name="embedding", classes=7))
    assert torch.equal(head.head.last.bias, whole.get_classifier().bias)
    assert plain().build(made, Task(name="embedding", classes=5)) is not None


@pytest.mark.parametrize("form", ["state", "wrapped", "safetensors"])
def test_weights_are_read_by_name(form, whole, tmp_path):
    path = tmp_path / ("w.safetensors" if form == "safetensors" else "w.pt")
    state = whole.state_dict()
    if form == "safetensors":
        save_file(state, path)
    elif form == "wrapped":
        prefixed = {f"module.{name}": part for name, part in state.items()}
        torch.save({"state_dict": prefixed, "epoch": 3}, path)
    else:
        torch.save(state, path)
    made = network(weights=str(path))
    check(made, whole)
    assert made.note == ""


def test_weights_with_other_names_are_taken_in_order(whole, tmp_path):
    path = tmp_path / "other.pt"
    kept = [
        part
        for name, part in whole.state_dict().items()
        if not name.endswith("num_batches_tracked")
    ]
    torch.save({f"layer{i}": part for i, part in enumerate(kept)}, path)
    made = network(weights=str(path))
    check(made, whole)
    assert "names in other.pt are not those of the network" in made.note


def test_weights_may_come_in_an_installed_package(whole, tmp_path, monkeypatch):
    package = tmp_path / "some_weights"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    for stated, said in (
        ("package:some_weights", "must hold one file of weights .*, got none"),
        ("package:no_such_weights", "there is no 'no_such_weights'; install it"),
        ("package:../etc", "must name an installed package"),
    ):
        with pytest.raises(ValueError, match=said):
            network(weights=stated)
    torch.save(whole.state_dict(), package / "models" / "w.pth")
    check(network(weights="package:some_weights"), whole)
    torch.save(whole.state_dict(), package / "v.pt")
    with pytest.raises(ValueError, match=r"got w\.pth, v\.pt"):
        network(weights="package:some_weights")


def test_what_does_not_fit_ends_in_a_sentence(whole, tmp_path):
    def saved(name, held):
        torch.save(held, tmp_path / name)
        return str(tmp_path / name)

    state = whole.state_dict()
    short = {f"n{i}": part for i, part in enumerate([*state.values()][:5])}
    (tmp_path / "broken.pt").write_bytes(b"no weights")
    (tmp_path / "broken.safetensors").write_bytes(b"no weights")
    long = {name + "x": part for name, part in state.items()}
    long |= {f"more{i}": torch.zeros(1) for i in range(3)}
    cases = (
        (str(tmp_path / "none.pt"), "which is no file"),
        (saved("short.pt", short), "nothing more|in its place"),
        (saved("odd.pt", {"a": 3}), "must hold tensors|does not fit"),
        (saved("list.pt", [1, 2]), "must hold tensors by name"),
        (saved("whole.pt", whole), r"more than tensors; save model\.state_dict"),
        (saved("long.pt", long), "and a classifier; give weights of the same network"),
        (str(tmp_path / "broken.pt"), "cannot be read"),
        (str(tmp_path / "broken.safetensors"), "cannot be read"),
    )
    for path, said in cases:
        with pytest.raises(ValueError, match=said):
            network(weights=path)


def test_pretrained_weights_keep_the_classifier_or_say_why_not(whole, monkeypatch):
    import timm

    def fetched(name, in_chans, pretrained, **_):
        assert pretrained
        if in_chans == 1:
            raise OSError("no connection.")
        made = timm.models.mobilenetv3_small_050(num_classes=7)
        made.load_state_dict(whole.state_dict())
        return made

    monkeypatch.setattr(timm, "create_model", fetched)
    check(network(weights="pretrained"), whole)
    part = Part(name=NAME, options={"weights": "pretrained"})
    with pytest.raises(
        ValueError, match="cannot be loaded: no connection; state the pa"
    ):
        make_network(part, channels=1)


def test_pooling_is_the_mean_or_the_maximum():
    torch.manual_seed(0)
    made = {
        pool: make_network(Part(name="resnet10t", options={"pool": pool}), channels=3)
        for pool in ("own", "average", "max")
    }
    maps = made["max"].eval().network.forward_features(torch.rand(1, 3, 64, 64))
    torch.testing.assert_close(
        made["max"].network.forward_head(maps), maps.amax((2, 3))
    )
    for pool in ("own", "average"):
        found = made[pool].network.forward_head(maps)
        torch.testing.assert_close(found, maps.mean((2, 3)))
    with pytest.raises(ValueError, match="'own', 'average' or 'max', got 'sum'"):
        network(pool="sum")
    with pytest.raises(ValueError, match="state weights='pretrained'"):
        network(pretrained=True)


def test_images_are_normalised_as_each_network_knows_them():
    assert network_colours(Part(name="resnet_small")) == IMAGENET
    assert network_colours(Part(name="timm:resnet50")) == IMAGENET
    vit = network_colours(Part(name="vit_medium_patch16_gap_256"))
    assert vit.mean == vit.std == (0.5, 0.5, 0.5)
