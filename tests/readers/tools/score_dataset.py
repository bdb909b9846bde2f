"""Score a dataset of Hugging Face `datasets`.

Run it in an environment with datasets and qualms: `python score_dataset.py`.
"""

import sys

import numpy as np

import qualms
from datasets import ClassLabel, Dataset, Features, List, Value
from qualms.predictions import build

NAMES = ["cat", "dog", "owl"]


def main():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 40)
    logits = 2 * np.eye(3)[label] + rng.normal(0, 1, (40, 3))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    made = Dataset.from_dict(
        {
            "label": label.tolist(),
            "probs": probs.tolist(),
            "item": [f"picture {row}" for row in range(40)],
        },
        features=Features(
            {
                "label": ClassLabel(names=NAMES),
                "probs": List(Value("float32")),
                "item": Value("string"),
            }
        ),
    )
    found = build(made)
    assert found.header.classes == tuple(NAMES)
    assert found.arrays["target"].tolist() == label.tolist()
    np.testing.assert_allclose(found.arrays["probs"][0], probs, atol=1e-6)
    assert found.arrays["item"][39] == "picture 39"
    sys.stdout.write(f"scored {qualms.score(made, resamples=0).n}\n")


if __name__ == "__main__":
    main()
