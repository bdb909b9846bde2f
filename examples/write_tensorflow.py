"""Write the predictions of a TensorFlow network: a Gaussian for every item.

Then: qualms score tensorflow.safetensors
"""

import tensorflow as tf

from qualms import predictions

images = tf.random.normal((200, 8))
target = tf.reduce_sum(images, axis=1) + tf.random.normal((200,))
network = tf.keras.Sequential(
    [tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(2)]
)

mean, log_var = tf.unstack(network(images), axis=1)

path = predictions.write(
    "tensorflow.safetensors",
    {"target": target, "mean": mean, "var": tf.exp(log_var)},
    header={"dataset": "random", "split": "test", "method": "gaussian", "seed": 0},
)
print(f"wrote {path}")
