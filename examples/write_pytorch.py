"""Write the predictions of a PyTorch network: Monte Carlo dropout with ten draws.

Then: qualms score pytorch.safetensors
"""

import torch
from torch import nn

from qualms import predictions

network = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
images, target = torch.randn(200, 8), torch.randint(0, 3, (200,))

# In training mode dropout stays on, so that every pass is a draw.
network.train()
probs = torch.stack([network(images).softmax(dim=-1) for _ in range(10)])

# Tensors may carry gradients, live on a GPU and be in bfloat16.
path = predictions.write(
    "pytorch.safetensors",
    {"target": target, "probs": probs, "item": [f"image {i}" for i in range(200)]},
    header={"dataset": "random", "split": "test", "method": "mc_dropout", "seed": 0},
)
print(f"wrote {path}")
