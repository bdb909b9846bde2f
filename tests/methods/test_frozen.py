"""A frozen network: its uncertainties, against hand computations."""

import numpy as np
import pytest
import torch

from methods.tiny import batches, built, made, predicted
from qualms.networks.resnet_small import resnet_small
from qualms.spec import Task

TASK = Task(name="embedding", classes=3)


def fitted(**options):
    method = made("frozen", options)
    network = built(method, TASK).eval()
    with torch.no_grad():
        method.after(network, batches(TASK, size=5))
    return method, network


def test_uncertainties_are_those_of_the_embedding_its_mirror_and_the_training_items():
    method, network = fitted(neighbours=2)
    arrays = predicted(method, network, TASK)
    names = [n.partition("/")[2] for n in arrays if n.startswith("uncertainty/")]
    assert names == [
        *("inverse_norm", "flips"),
        *("knn", "mahalanobis", "relative_mahalanobis"),
    ]
    embedding = arrays["embedding"].double()
    length = embedding.norm(dim=1)
    assert torch.allclose(arrays["uncertainty/inverse_norm"], 1 / length)
    xs = torch.cat([batch.x for batch in batches(TASK, size=5)()])
    with torch.no_grad():
        mirrored = network.backbone(xs.flip(-1)).double()
    cosine = torch.cosine_similarity(embedding, mirrored)
    assert torch.allclose(arrays["uncertainty/flips"], 1 - cosine)
    unit = (embedding / length[:, None]).numpy()
    distances = np.sort(np.linalg.norm(unit[:, None] - unit[None], axis=2), axis=1)
    # The items themselves are the training items, so each is its own nearest one.
    assert arrays["uncertainty/knn"].numpy() == pytest.approx(distances[:, 1], abs=1e-6)


def test_a_classifier_that_came_with_the_weights_gives_its_entropy():
    for classes, has_classes in ((3, True), (5, False)):
        body = resnet_small(channels=1, width=4, blocks=(1, 1)).eval()
        body.classifier = torch.nn.Linear(body.features, classes)
        method = made("frozen", {"items": 0})
        network = method.build(body, TASK).eval()
        x = torch.randn(6, 1, 12, 12)
        with torch.no_grad():
            arrays = method.predict(network, x, TASK)
            probs = body.classifier(body(x)).softmax(1)
        wanted = torch.special.entr(probs).sum(1).double()
        assert torch.allclose(arrays["uncertainty/entropy"], wanted, atol=1e-5)
        assert ("predicted" in arrays) == has_classes
        assert "uncertainty/knn" not in arrays


def test_options_that_make_no_sense_are_refused():
    for options in ({"neighbours": 0}, {"items": -1}):
        with pytest.raises(ValueError, match="at least 1 and items at least 0"):
            made("frozen", options)
