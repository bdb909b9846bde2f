"""Files .npz and .safetensors: arrays by name, with a header.

In .npz the header is a 0-d string named `header`. In .safetensors numbers are float32
and the header is in the metadata. The format has no text, so arrays of text (`item`,
`group`, `group/<name>`, `cluster`, `extra/<name>`) are JSON lists in the metadata, each
under its name.
It has no checksums either, so ours are in the metadata under `crc32`.
"""

import json
import zipfile
import zlib
from collections.abc import Collection, Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from safetensors import numpy as safetensors_numpy
from safetensors import safe_open

from qualms.predictions._errors import PredictionsError, listed, parsing, shortened
from qualms.predictions._foreign import numpy_array
from qualms.predictions._header import Header, dumps, loads
from qualms.predictions._limits import refuse_unpacking, refuse_wide_text
from qualms.predictions._normal import RawArrays
from qualms.predictions._opened import OpenedFile
from qualms.predictions._values import text_array, where_in
from qualms.predictions.schema import is_array_name

_NPZ_HEADER = "a 0-d string array 'header' (JSON)"
_SAFETENSORS_HEADER = "the metadata under 'header' (JSON)"
_TEXTS = ("item", "group", "cluster")
_TEXT_FAMILIES = ("group/", "extra/")
# Dtypes of .safetensors that NumPy has too; the bits of bfloat16 are read as uint16.
_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|u1",
}
_CODES = {np.dtype(code): name for name, code in _DTYPES.items() if name[0] in "FIU"}
_CODES[np.dtype(np.bool_)] = "BOOL"


class Declared(NamedTuple):
    """The shape and dtype that a file declares for an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        """The memory that the array takes."""
        return prod(self.shape) * self.dtype.itemsize


class _Member(NamedTuple):
    """An array of an .npz file, and its entry in the directory of the file."""

    declared: Declared
    info: zipfile.ZipInfo


class _StoredTensor(NamedTuple):
    """The dtype, the shape and the first byte of a tensor in a .safetensors file."""

    code: str
    shape: tuple[int, ...]
    start: int


def read_npz(source: OpenedFile) -> RawArrays:
    """Read the arrays and the header of an .npz file; nothing is ever unpickled."""
    with parsing(source.path):
        archive = zipfile.ZipFile(source.file)
        members, unread = _members(source.file, archive)
        header = members.pop("header", None)
        refuse_unpacking(
            sum(declared.bytes for declared, _ in members.values()), source.size
        )

    def load(name: str) -> NDArray[Any]:
        with parsing(source.path):
            return _load_npz(archive, members[name].info, name)

    return RawArrays(
        shapes={name: member.declared.shape for name, member in members.items()},
        stored={name: member.declared.dtype for name, member in members.items()},
        packed=source.size,
        load=load,
        header={} if header is None else _npz_header(source, archive, header),
        header_at=_NPZ_HEADER,
        unread=unread,
    )


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]], header: Header) -> None:
    """Write an .npz file; numbers keep their types."""
    text = dumps(header, {name: array.shape for name, array in arrays.items()})
    members: dict[str, Any] = {**arrays, "header": np.array(text)}
    with path.open("xb") as file:
        np.savez(file, **members)


def _members(
    file: BinaryIO, archive: zipfile.ZipFile
) -> tuple[dict[str, _Member], tuple[str, ...]]:
    members: dict[str, _Member] = {}
    unread: dict[str, None] = {}
    _check_count(file, len(archive.infolist()))
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name.endswith("/data.pkl"):
            raise PredictionsError(
                "was written by torch.save, and Python objects are never loaded; load "
                "it with torch.load and write it with qualms.predictions.write"
            )
        if name in members or name in unread:
            raise PredictionsError(
                f"array '{shortened(name)}' is there twice; write the file again"
            )
        if name == "header" or is_array_name(name):
            members[name] = _Member(_declared(archive, info, name), info)
        else:
            unread[name] = None
            archive.open(info).close()  # checks its name against the directory
    return members, tuple(unread)


def _check_count(file: BinaryIO, members: int) -> None:
    """Raise unless the directory of a zip file has as many entries as it states."""
    # A damaged length in the directory can swallow the entries after it.
    file.seek(max(0, file.seek(0, 2) - 2**16 - 22))
    tail = file.read()
    count = tail.rfind(b"PK\5\6") + 10
    recorded = int.from_bytes(tail[count : count + 2], "little")
    if recorded not in (members, 0xFFFF):  # 0xFFFF: more than this field can state
        raise PredictionsError(
            f"states {recorded} arrays, but {members} are found; the file is damaged: "
            "write it again"
        )


def _declared(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Declared:
    with archive.open(info) as stream:
        version = npy.read_magic(stream)
        header = npy.read_array_header_1_0 if version < (2, 0) else _header_2_0
        shape, _, dtype = header(stream)
        stored = info.file_size - stream.tell()
    if dtype.hasobject:
        raise PredictionsError(
            f"array '{name}' holds Python objects, which are never loaded; save it as "
            "numbers or text, for example np.asarray(values, dtype=float)"
        )
    declared = Declared(shape, dtype)
    if min(shape, default=0) < 0 or declared.bytes != stored:
        raise PredictionsError(
            f"array '{name}' declares shape {shape} of {dtype}, which takes "
            f"{declared.bytes} bytes, but {stored} bytes are stored; the file is "
            "damaged: write it again"
        )
    if dtype.kind in "US" and shape:
        width = dtype.itemsize // (4 if dtype.kind == "U" else 1)
        refuse_wide_text(
            name,
            rows=prod(shape),
            longest=width,
            characters=info.compress_size,
        )
    return declared


def _header_2_0(stream: Any) -> Any:
    return npy.read_array_header_2_0(stream)


def _load_npz(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str
) -> NDArray[Any]:
    with archive.open(info) as stream:
        array = npy.read_array(stream, allow_pickle=False)
        # The checksum is compared only when the end of the member is reached.
        if stream.read(1):
            raise ValueError(f"array '{name}' is longer than it declares")
    return numpy_array(name, np.asarray(array))


def archived_array(
    source: OpenedFile, archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> NDArray[Any]:
    """Return an array of an .npz file, whatever its name; nothing is unpickled."""
    name = info.filename.removesuffix(".npy")
    _check_count(source.file, len(archive.infolist()))
    refuse_unpacking(_declared(archive, info, name).bytes, source.size)
    return _load_npz(archive, info, name)


def _npz_header(
    source: OpenedFile, archive: zipfile.ZipFile, member: _Member
) -> dict[str, Any]:
    declared = member.declared
    if prod(declared.shape) != 1 or declared.dtype.kind not in "US":
        raise PredictionsError(
            f"array 'header' must be one string of JSON, got shape {declared.shape} of "
            f"{declared.dtype}; save it as np.array(json.dumps(...))"
        )
    with parsing(source.path):
        text = _load_npz(archive, member.info, "header").item()
    return loads(text, "the array 'header'")


def read_safetensors(source: OpenedFile) -> RawArrays:
    """Read the arrays and the header of a .safetensors file."""
    # Opening it checks that the tensors lie end to end and fill the file.
    with parsing(source.path), safe_open(source.path, framework="np"):
        source.file.seek(0)
        size = int.from_bytes(source.file.read(8), "little")
        index = json.loads(source.file.read(size))
        metadata = index.pop("__metadata__", None) or {}
        tensors = {
            name: _StoredTensor(
                about["dtype"],
                tuple(about["shape"]),
                8 + size + about["data_offsets"][0],
            )
            for name, about in index.items()
            if is_array_name(name)
        }
    sums = _sums(metadata, index)
    texts = {
        name: _text(name, text, sums)
        for name, text in metadata.items()
        if (name in _TEXTS or name.startswith(_TEXT_FAMILIES)) and name not in tensors
    }
    header = metadata.get("header")
    if header is not None:
        _compare("header", zlib.crc32(header.encode()), sums)
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    return RawArrays(
        shapes=shapes | {name: array.shape for name, array in texts.items()},
        stored={
            name: np.dtype(_DTYPES.get(tensor.code, "<f4"))
            for name, tensor in tensors.items()
        }
        | {name: array.dtype for name, array in texts.items()},
        packed=source.size,
        load=lambda name: (
            texts[name] if name in texts else _load(source, name, tensors[name], sums)
        ),
        header={} if header is None else loads(header, "the metadata's 'header'"),
        header_at=_SAFETENSORS_HEADER,
        unread=tuple(name for name in index if name not in tensors),
    )


def write_safetensors(
    path: Path, arrays: Mapping[str, NDArray[Any]], header: Header | None
) -> None:
    """Write a .safetensors file, float64 as float32."""
    texts = {name: a for name, a in arrays.items() if a.dtype.kind == "U"}
    tensors = {
        name: _single(name, a) for name, a in arrays.items() if name not in texts
    }
    metadata = {name: json.dumps(array.tolist()) for name, array in texts.items()}
    if header is not None:
        shapes = {name: array.shape for name, array in arrays.items()}
        metadata["header"] = dumps(header, shapes)
    sums = {name: zlib.crc32(text.encode()) for name, text in metadata.items()}
    sums |= {
        name: _sum(array, _CODES.get(array.dtype, ""))
        for name, array in tensors.items()
    }
    metadata["crc32"] = json.dumps(sums)
    # The library writes files that only their owner may read, whatever the umask is.
    path.touch()
    mode = path.stat().st_mode
    safetensors_numpy.save_file(tensors, path, metadata=metadata)
    _sort_metadata(path)
    path.chmod(mode)


def _sort_metadata(path: Path) -> None:
    """Sort the metadata, which the library writes in any order.

    Equal predictions then make equal files.
    """
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        index = json.loads(file.read(size))
        index["__metadata__"] = dict(sorted(index["__metadata__"].items()))
        text = json.dumps(index, ensure_ascii=False, separators=(",", ":")).encode()
        assert len(text) <= size  # the same characters in another order
        file.seek(8)
        file.write(text.ljust(size))


def _load(
    source: OpenedFile, name: str, tensor: _StoredTensor, sums: Mapping[str, int]
) -> NDArray[Any]:
    code, shape, start = tensor
    if code not in _DTYPES:
        raise PredictionsError(
            f"array '{name}' is stored as {code:.20}, which NumPy does not have; "
            "convert it to float32"
        )
    # Not memory-mapped: the pages of a mapping would count as memory a second time.
    with parsing(source.path):
        source.file.seek(start)
        flat = np.fromfile(source.file, _DTYPES[code], count=prod(shape))
        array = flat.reshape(shape)
    if name in sums:
        _compare(name, _sum(array, code), sums)
    return _as_numpy(array, code)


def _as_numpy(array: NDArray[Any], code: str) -> NDArray[Any]:
    if code == "BF16":
        # Its bits are the upper half of a float32.
        return (array.astype(np.uint32) << 16).view(np.float32)
    if code == "BOOL" and (not array.size or array.max() <= 1):
        return array.astype(np.bool_)
    return array


def _sum(array: NDArray[Any], code: str) -> int:
    # The sum covers dtype and shape, which are not among the bytes of the tensor.
    about = zlib.crc32(f"{code}{list(array.shape)}".encode())
    return zlib.crc32(array.reshape(-1).view(np.uint8).data, about)


def _sums(metadata: Mapping[str, str], names: Collection[str]) -> dict[str, int]:
    if "crc32" not in metadata:
        return {}
    sums = loads(metadata["crc32"], "the metadata's 'crc32'")
    missing = sorted(sums.keys() - metadata.keys() - set(names))
    if missing:
        raise PredictionsError(
            f"has a checksum of {listed(missing)}, which is not there; the file is "
            "incomplete: write it again"
        )
    return sums


def _compare(name: str, checksum: int, sums: Mapping[str, int]) -> None:
    if sums.get(name, checksum) != checksum:
        part = "the header" if name == "header" else f"array '{shortened(name)}'"
        raise PredictionsError(
            f"{part} does not match its checksum: the file was damaged or changed; "
            "write it again (or remove 'crc32' from the metadata, if the change is "
            "meant)"
        )


def _text(name: str, text: str, sums: Mapping[str, int]) -> NDArray[Any]:
    _compare(name, zlib.crc32(text.encode()), sums)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or not set(map(type, values)) <= {str}:
        raise PredictionsError(
            f"the metadata's '{shortened(name)}' must be a JSON list of text, got "
            f"{text[:40]!r}; write json.dumps([...]) of one text per row"
        )
    return text_array(name, values)


def _single(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.float64 or name.startswith("extra/"):
        return np.ascontiguousarray(array).reshape(array.shape)
    with np.errstate(all="ignore"):
        single = np.ascontiguousarray(array, dtype=np.float32)
    if np.isfinite(single.min()) and np.isfinite(single.max()):
        return single
    where = tuple(np.argwhere(~np.isfinite(single))[0])
    raise PredictionsError(
        f"array '{name}' does not fit into float32, {where_in('', where)} is "
        f"{float(array[where]):g}; write .npz, which keeps float64"
    )
