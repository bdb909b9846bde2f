"""Write the predictions of a JAX network: one draw, given as P(y=1).

Then: qualms score jax.safetensors
"""

import jax
import jax.numpy as jnp

from qualms import predictions

keys = jax.random.split(jax.random.key(0), 3)
images = jax.random.normal(keys[0], (200, 8))
target = jax.random.bernoulli(keys[1], 0.5, (200,)).astype(jnp.int32)
weights = jax.random.normal(keys[2], (8,))

prob = jax.nn.sigmoid(images @ weights)

# An uncertainty of your own goes beside it; larger is less certain.
path = predictions.write(
    "jax.safetensors",
    {"target": target, "prob": prob, "uncertainty/margin": -jnp.abs(prob - 0.5)},
    header={"dataset": "random", "split": "test", "method": "map", "seed": 0},
)
print(f"wrote {path}")
