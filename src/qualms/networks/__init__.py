"""Networks, one file per family; the folder is the registry.

A network is a function of its options that returns an `nn.Module` with the attribute
`features` and `forward(x)` from (B, channels, *space) to (B, features). It may also
state `dropout_after`, the names of the layers after which Monte Carlo dropout acts, and
`head_sd`, the standard deviation of the initial weights of a classifier. Networks of
timm need no file.
"""

from qualms.networks._make import make_network
from qualms.networks._timm import load_torchvision

__all__ = ["load_torchvision", "make_network"]
