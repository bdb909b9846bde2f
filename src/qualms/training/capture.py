"""A training step recorded as a CUDA graph, which is then replayed as a whole.

A small network at batch 32 spends most of an eager step on launching kernels. Every
form of a step (its phase and number of items) first trains eagerly a few times. Then it
is recorded, and replayed from then on.
"""

from collections import Counter
from collections.abc import Callable, Hashable

import torch

from qualms.methods import Moment

_EAGER = 3
"""Eager steps before recording, in which libraries choose algorithms and allocate."""

Step = Callable[[Moment, int], None]
"""Takes one step with that many items; plain numbers of the moment are recorded."""


class Recorder:
    """Takes steps: eagerly at first, and by replay once they are recorded."""

    def __init__(self, step: Step, *, record: bool, say: Callable[[str], None]) -> None:
        self._step = step
        self._record = record
        self._say = say
        self._taken: Counter[Hashable] = Counter()
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}

    def __call__(self, phase: Hashable, moment: Moment, count: int) -> None:
        """One step of `count` items."""
        form = (phase, count)
        if form in self._graphs:
            self._graphs[form].replay()
            return
        self._step(moment, count)
        self._taken[form] += 1
        if self._record and self._taken[form] == _EAGER:
            self._try_to_record(form, moment, count)

    def _try_to_record(self, form: Hashable, moment: Moment, count: int) -> None:
        try:
            self._graphs[form] = self._recorded(moment, count)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self._record = False
            why = str(error).partition("\n")[0]
            self._say(f"steps cannot be recorded as a CUDA graph and stay eager: {why}")

    def _recorded(self, moment: Moment, count: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        # Steps of one run never overlap and leave nothing in this memory, so all of
        # its graphs can share it.
        first = next(iter(self._graphs.values()), None)
        with torch.cuda.graph(
            graph,
            pool=None if first is None else first.pool(),
            stream=torch.cuda.current_stream(),
            capture_error_mode="thread_local",  # a checkpoint may be on its way
        ):
            self._step(moment, count)
        return graph
