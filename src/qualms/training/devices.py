"""Several devices by one name, and how a process becomes one of their team."""

import os
from dataclasses import replace

import torch

from qualms.training._error import TrainingError
from qualms.training.machine import Machine, make_machine
from qualms.training.options import Training
from qualms.training.team import Team


def several(device: str) -> list[str]:
    """The devices that a name stands for: itself, or all of one such as "cuda:0,1".

    >>> several("cuda:0,2")
    ['cuda:0', 'cuda:2']
    """
    if "," not in device:
        return [device]
    kind, _, numbers = device.partition(":")
    listed = numbers.split(",")
    once = len(set(listed)) == len(listed)
    if not once or not all(number.isdecimal() for number in listed):
        raise TrainingError(
            f"several devices are named as in 'cuda:0,1', each once, got {device!r}"
        )
    return [f"{kind}:{number}" for number in listed]


def needs_team(device: str) -> bool:
    """Whether processes must be started for `device`, as this one is none of them."""
    return len(several(device)) > 1 and "LOCAL_RANK" not in os.environ


def join(device: str, options: Training) -> Machine:
    """The machine that `device` names; this process's own where those are several.

    Which one that is, and where to meet the others, it reads from its environment.
    """
    names = several(device)
    if len(names) == 1:
        return make_machine(device, options)
    from lightning_fabric import Fabric

    kind = torch.device(names[0]).type
    cuda = kind == "cuda"
    numbers = [int(name.partition(":")[2]) for name in names]
    fabric = Fabric(
        accelerator=kind, devices=numbers if cuda else len(names), strategy="ddp"
    )
    fabric.launch()
    own = names[fabric.local_rank] if cuda else kind
    team = Team(rank=fabric.global_rank, size=fabric.world_size)
    return replace(make_machine(own, options), team=team)
