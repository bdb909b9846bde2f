"""Reads one array of a file that another program wrote."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from safetensors import safe_open

from qualms.predictions._binary import archived_array
from qualms.predictions._errors import PredictionsError, listed, naming, parsing
from qualms.predictions._foreign import numpy_array
from qualms.predictions._limits import refuse_unpacking
from qualms.predictions._opened import OpenedFile, opened

ARRAY_FILES = (".npz", ".npy", ".safetensors")
"""Endings of files whose arrays are read without unpickling anything."""


def read_array(path: Path, name: str = "") -> NDArray[Any]:
    """Read an array of an .npz, .npy or .safetensors file; nothing is unpickled.

    Without a name, the file must hold exactly one array.

    Raises:
        PredictionsError: If the file is no such file, or has no such array.
    """
    with naming(str(path)):
        if not path.is_file():
            raise PredictionsError("there is no such file; check the path")
        if path.suffix.lower() not in ARRAY_FILES:
            raise PredictionsError(
                f"must end in {', '.join(ARRAY_FILES)}, since nothing is ever"
                " unpickled; save the array with numpy.savez_compressed or safetensors"
            )
        with opened(path) as source, parsing(path):
            return _READERS[path.suffix.lower()](source, name)


def _from_npz(source: OpenedFile, name: str) -> NDArray[Any]:
    archive = zipfile.ZipFile(source.file)
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    return archived_array(source, archive, members[_chosen(name, list(members))])


def _from_npy(source: OpenedFile, name: str) -> NDArray[Any]:
    _chosen(name, [name])
    return numpy_array(name, npy.read_array(source.file, allow_pickle=False))


def _from_safetensors(source: OpenedFile, name: str) -> NDArray[Any]:
    with safe_open(source.path, framework="np") as file:
        array = file.get_tensor(_chosen(name, list(file.keys())))
    refuse_unpacking(array.nbytes, source.size)
    return numpy_array(name, np.asarray(array))


def _chosen(name: str, names: list[str]) -> str:
    """Return the name of the array to read; raise unless there is one."""
    if name in names:
        return name
    if name or len(names) != 1:
        wanted = f"an array '{name}'" if name else "one array alone"
        raise PredictionsError(
            f"must hold {wanted}, found {listed(names)}; write the file again"
        )
    return names[0]


_READERS = {".npz": _from_npz, ".npy": _from_npy, ".safetensors": _from_safetensors}
