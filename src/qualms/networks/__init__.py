"""Networks, one file per family; the folder is the registry.

A network is a function of its options that returns an `nn.Module` with the attribute
`features` and `forward(x)` from (B, channels, *space) to (B, features). What timm knows
needs no file.
"""

from qualms.networks._build import build

__all__ = ["build"]
