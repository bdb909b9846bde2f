"""Write the predictions of a scikit-learn forest: every tree is a draw.

Then: qualms score sklearn.safetensors
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from qualms import predictions

images, target = load_digits(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(images, target, random_state=0)
forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=0)
forest.fit(x_train, y_train)

probs = np.stack([tree.predict_proba(x_test) for tree in forest.estimators_])

path = predictions.write(
    "sklearn.safetensors",
    {"target": y_test, "probs": probs},
    header={"dataset": "digits", "split": "test", "method": "forest", "seed": 0},
)
print(f"wrote {path}")
