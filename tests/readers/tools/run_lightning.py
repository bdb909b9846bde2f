"""Test a module by Lightning's own Trainer with the callback of qualms.

Run it in an environment with lightning and qualms: `python run_lightning.py`.
"""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

import qualms
from qualms.networks import load_torchvision
from qualms.trained import lightning_callback

load_torchvision()  # it may lack operators for this torch, and Lightning imports it
import lightning  # noqa: E402 - see above


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def test_step(self, batch):
        x, y = batch
        return {"probs": self.layer(x), "target": y}


def main():
    torch.manual_seed(0)
    x, y = torch.randn(50, 4), torch.randint(0, 3, (50,))
    collected = qualms.Accumulator("classification", logits=True)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=[lightning_callback(collected)],
    )
    module = Module()
    trainer.test(module, DataLoader(TensorDataset(x, y), batch_size=16), verbose=False)
    with torch.no_grad():
        wanted = torch.softmax(module.layer(x), 1).numpy()
    found = collected.predictions().arrays
    assert np.allclose(found["probs"][0], wanted, atol=1e-5)
    assert np.array_equal(found["target"], y.numpy())
    sys.stdout.write(f"collected {len(collected)}\n")


if __name__ == "__main__":
    main()
