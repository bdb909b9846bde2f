"""Write predictions with Hugging Face `datasets`: a folder, and a table.

Run it in an environment with datasets: `python write_datasets.py DIR`.
"""

import sys
from pathlib import Path

import numpy as np

from datasets import ClassLabel, Dataset, Features, List, Value

NAMES = ["cat", "dog", "owl"]


def main(root):
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
    made.save_to_disk(root / "frame", num_shards=2)
    made.to_parquet(root / "frame.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
