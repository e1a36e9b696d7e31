"""Pickled weights without running anything, and without believing the numbers in a file.

`torch.save` writes an archive of a pickle and of the tensors' bytes, or (before 1.6) one after the other. Both are read
here with an unpickler of our own. It knows tensors, dictionaries and plain values; every other class becomes an inert
stand-in, so that nothing that a file names is ever imported or called. A tensor never reaches beyond the bytes that
are there.
"""

import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, ClassVar

import torch
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.reading import DAMAGED, MB, Unreadable, file_size, first_line

MOST_PICKLE, MOST_DIMENSIONS = 16 * MB, 64
MAGIC = 0x1950A86A20F9469CFC6C
"""How files from before torch 1.6 begin."""
STORAGES = {
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "DoubleStorage": torch.float64,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}
PLAIN_KEYS = (str, bytes, int, float, type(None))
"""What dictionaries of a pickle may be keyed by: the hash of nested tuples can take for ever."""


class Inert(dict[Any, Any]):  # a dict, so that items set on it go somewhere
    """Stands for an object of a class that is not loaded; it takes whatever it is given and does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __call__(self, *args: Any, **kwargs: Any) -> "Inert":
        return Inert()

    def append(self, item: Any) -> None:
        """Accepts list items too."""

    def extend(self, items: Any) -> None:
        """Accepts list items too."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


def _dictionary(pairs: Any = (), *_: Any) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    _put(found, [each for pair in (pairs if isinstance(pairs, list) else ()) for each in pair])
    return found


def _put(target: Any, flat: list[Any]) -> None:
    """Keys and values in turn; whatever is no dictionary takes nothing."""
    if isinstance(target, dict):
        for key, value in zip(flat[::2], flat[1::2], strict=True):
            if isinstance(key, (*PLAIN_KEYS, Inert)):
                target[key] = value


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> Tensor:
    """A tensor within its storage."""
    numbers = (offset, *size, *stride)
    if not isinstance(storage, Tensor) or len(size) != len(stride) or len(size) > MOST_DIMENSIONS:
        raise Unreadable("it holds a tensor without a storage or a shape")
    if any(type(each) is not int or each < 0 for each in numbers):
        raise Unreadable("it holds a tensor whose shape is no list of whole numbers")
    count, last = 1, offset
    for length, step in zip(size, stride, strict=True):
        count, last = count * length, last + max(length - 1, 0) * step
    if count and (last >= storage.numel() or count > storage.numel()):
        raise Unreadable(f"it holds a tensor of shape {tuple(size)} that reaches beyond its bytes")
    return (
        storage.as_strided(size, stride, storage.storage_offset() + offset)
        if count
        else storage.new_empty(0).reshape(size)
    )


def _parameter(data: Any = None, *_: Any) -> Any:
    return data


MADE: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): _dictionary,
    ("collections", "defaultdict"): lambda *_: {},
    ("builtins", "dict"): _dictionary,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    **{("torch", name): dtype for name, dtype in STORAGES.items()},
}
"""All that a pickle may name; anything else is inert."""
IN_PYTHON: Any = pickle._Unpickler
"""The one in C allocates what numbers in a file ask for."""


class _Unpickler(IN_PYTHON):  # type: ignore[misc]
    """Finds tensors and plain containers, and nothing else."""

    def __init__(self, file: IO[bytes], stored: Callable[[torch.dtype, str, int], Tensor] | None = None) -> None:
        super().__init__(file, encoding="utf-8", errors="replace")
        self._stored = stored

    def find_class(self, module: str, name: str) -> Any:
        return MADE.get((module, name), Inert)

    def persistent_load(self, pid: Any) -> Any:
        """The storage that a tensor lies in, as a flat tensor."""
        kind, dtype, key, _, count = pid[:5]
        known = self._stored is not None and isinstance(dtype, torch.dtype) and type(count) is int and count >= 0
        if kind != "storage" or not known or not isinstance(key, str):
            return Inert()  # of a kind that no network here has
        assert self._stored is not None
        return self._stored(dtype, key, count)

    def _set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        _put(self.stack[-1], [key, value])

    def _set_items(self) -> None:
        items = self.pop_mark()
        _put(self.stack[-1], items)

    def _dict(self) -> None:
        items = self.pop_mark()
        found: dict[Any, Any] = {}
        _put(found, items)
        self.append(found)

    def _build(self) -> None:
        """State goes to stand-ins only."""
        state = self.stack.pop()
        if isinstance(self.stack[-1], Inert) and isinstance(state, dict):
            self.stack[-1].update(state)

    def _no_set(self) -> None:
        self.append(Inert())

    def _drop(self) -> None:
        self.pop_mark()

    def _no_frozen_set(self) -> None:
        self.pop_mark()
        self.append(Inert())

    def _refuse(self) -> None:
        raise Unreadable("it holds buffers, which no checkpoint does")

    dispatch: ClassVar[dict[int, Any]] = {
        **IN_PYTHON.dispatch,
        pickle.SETITEM[0]: _set_item,
        pickle.SETITEMS[0]: _set_items,
        pickle.DICT[0]: _dict,
        pickle.BUILD[0]: _build,
        pickle.EMPTY_SET[0]: _no_set,
        pickle.ADDITEMS[0]: _drop,
        pickle.FROZENSET[0]: _no_frozen_set,
        pickle.BYTEARRAY8[0]: _refuse,
        pickle.NEXT_BUFFER[0]: _refuse,
        pickle.READONLY_BUFFER[0]: _refuse,
    }


def read_pickle(path: str | Path) -> Any:
    """The content of a `.bin`, `.pt`, `.pth` or `.ckpt` file, tensors on the CPU."""
    path = Path(path)
    try:
        size = file_size(path)
        with path.open("rb") as file:
            return _archive(path, file, size) if file.read(2) == b"PK" else _stream(file, size)
    except (
        pickle.UnpicklingError,
        zipfile.BadZipFile,
        RuntimeError,
        EOFError,
        OSError,
        struct.error,
        *DAMAGED,
    ) as error:
        raise EigentimeError(f"{path} is not a whole checkpoint file ({first_line(error)}).") from None


def _archive(path: Path, file: BinaryIO, size: int) -> Any:
    """A pickle `…/data.pkl` and the bytes of each storage as `…/data/KEY`, none of them compressed."""
    with zipfile.ZipFile(file) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries.values()):
            raise Unreadable("its archive is compressed, which torch.save never does")
        main = next((name for name in entries if name.rpartition("/")[2] == "data.pkl"), None)
        if main is None:
            raise Unreadable("it is an archive of something else")
        folder = main.removesuffix("data.pkl")
        if entries[main].file_size > MOST_PICKLE:
            raise Unreadable(f"its structure alone has more than {MOST_PICKLE:,} bytes")
        order = folder + "byteorder"
        if order in entries and archive.read(order) != b"little":
            raise Unreadable("it was written on a machine of another byte order")
        whole: Any = torch.UntypedStorage.from_file(str(path), False, size)
        flat: dict[str, Tensor] = {}

        def stored(dtype: torch.dtype, key: str, count: int) -> Tensor:
            entry, itemsize = entries[f"{folder}data/{key}"], dtype.itemsize
            if count * itemsize > entry.file_size:
                raise Unreadable(f"storage {key} has {entry.file_size:,} bytes, not {count:,} numbers")
            if key not in flat:
                begin = _begin(file, entry)
                if begin + entry.file_size > size:
                    raise Unreadable(f"storage {key} ends after the file")
                flat[key] = torch.empty(0, dtype=torch.uint8).set_(whole, begin, (entry.file_size,), (1,))
            data = flat[key][: count * itemsize]
            return (data if flat[key].storage_offset() % itemsize == 0 else data.clone()).view(dtype)

        with archive.open(main) as content:
            return _Unpickler(content, stored).load()


def _begin(file: BinaryIO, entry: zipfile.ZipInfo) -> int:
    """Where an entry's bytes begin, after a header of its own."""
    file.seek(entry.header_offset)
    mark, name, extra = struct.unpack("<4s22xHH", file.read(30))
    if mark != b"PK\x03\x04":
        raise Unreadable("its archive is damaged")
    return int(entry.header_offset + 30 + name + extra)


def _stream(file: BinaryIO, size: int) -> Any:
    """Before torch 1.6: five pickles (a magic number, a version, the machine, the content, names of storages), and the
    storages, each a count and its bytes."""
    file.seek(0)
    flat: dict[str, Tensor] = {}

    def stored(dtype: torch.dtype, key: str, count: int) -> Tensor:
        if key not in flat:
            taken = sum(each.numel() * each.itemsize for each in flat.values())
            if taken + count * dtype.itemsize > size:
                raise Unreadable(f"storage {key} has fewer than {count:,} numbers")
            flat[key] = torch.zeros(count, dtype=dtype)
        if flat[key].dtype != dtype or flat[key].numel() < count:
            raise Unreadable(f"storage {key} is used in two ways")
        return flat[key]

    if _Unpickler(file).load() != MAGIC:
        raise Unreadable("it is no checkpoint")
    for _ in range(2):
        _Unpickler(file).load()
    content = _Unpickler(file, stored).load()
    for key, data in _filled(_Unpickler(file).load(), flat):
        raw = file.read(8)
        if len(raw) < 8 or int.from_bytes(raw, "little") != data.numel():
            raise Unreadable(f"storage {key} has another size than its tensors say")
        into: Any = data.view(torch.uint8).numpy()
        read = file.readinto(into)  # type: ignore[attr-defined]
        if read != data.numel() * data.itemsize:
            raise Unreadable("it is cut short")
    return content


def _filled(keys: Any, flat: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    if not isinstance(keys, list) or any(not isinstance(key, str) for key in keys) or sorted(keys) != sorted(flat):
        raise Unreadable("its list of storages does not fit its tensors")
    return ((key, flat[key]) for key in keys)
