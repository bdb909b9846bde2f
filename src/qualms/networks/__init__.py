"""Networks, one file per family; the folder is the registry.

A network is a function of its options that returns an `nn.Module` with the attribute
`features` and `forward(x)` from (B, channels, *space) to (B, features). It may also
state `dropout_after`, the names of the layers whose outputs Monte Carlo dropout drops
out, and `head_sd`, the standard deviation of a classifier's first weights. What timm
knows needs no file.
"""

from qualms.networks._build import build

__all__ = ["build"]
