"""A second device on a machine that has none: `torch.device("pretend:0")`, on host memory.

Its tensors are CPU tensors whose memory is handed through DLPack under another device's number, and one fallback
kernel runs every operation on CPU aliases of it. As on a real accelerator, mixing its tensors with the CPU's raises.
`traffic` counts what crosses between the two and where the host would have to wait, by line of code; with float64 in
`refused` the device is like those that have none.
"""

import ctypes
import sys
from collections import Counter
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "pretend"
CPU_TYPE, PRETEND_TYPE = 1, 12  # DLPack's numbers of kinds of device
ON_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
READS_BY_INDEX = "aten::index"
INDEXING = {READS_BY_INDEX, "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
TAKES_CPU_SCALARS = {f"aten::{name}" for name in ("fill_", "masked_fill", "masked_fill_", "index_fill", "where")}
TAKES_NUMBERS = {"aten::add", "aten::sub", "aten::mul", "aten::div"}
MAKES_WAIT = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64}


class Traffic:
    """What happened since `reset`: bytes each way, waits, and both by line of code."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.to_host = self.to_device = self.waits = 0
        self.lines = Counter()

    def count(self, kind, amount):
        setattr(self, kind, getattr(self, kind) + amount)
        frame = sys._getframe(1)
        inner = (__file__, str(Path(torch.__file__).parent))
        while frame.f_back and frame.f_code.co_filename.startswith(inner):
            frame = frame.f_back
        self.lines[kind, f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"] += amount


traffic = Traffic()
refused = set()
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def is_ours(value):
    return isinstance(value, Tensor) and value.device.type == NAME


def _relabelled(tensor, kind):
    """The same memory under another device's number."""
    if kind == PRETEND_TYPE and tensor.dtype in refused:
        raise TypeError(f"The {NAME} device has no {tensor.dtype}.")
    capsule = torch._C._to_dlpack(tensor)
    ctypes.c_int32.from_address(_pointer(capsule, b"dltensor") + 8).value = kind
    return torch._C._from_dlpack(capsule)


def _alias(value):
    return _relabelled(value, CPU_TYPE) if is_ours(value) else value


def _mapped(change, value):
    if isinstance(value, dict):
        return {key: _mapped(change, one) for key, one in value.items()}
    return type(value)(_mapped(change, one) for one in value) if isinstance(value, list | tuple) else change(value)


@cache
def _traits(op):
    """Name, whether a view comes back, whether CPU scalars may mix in, whether the host waits, and the arguments: which
    are tensors, which are written."""
    schema, tags = op._schema, set(op.tags)
    view = any(one.alias_info and not one.alias_info.is_write for one in schema.returns) or schema.name == "aten::set_"
    scalars = torch.Tag.pointwise in tags or schema.name in INDEXING | TAKES_CPU_SCALARS
    arguments = {
        one.name: (isinstance(one.type, torch.TensorType), bool(one.alias_info and one.alias_info.is_write))
        for one in schema.arguments
    }
    return schema.name, view, scalars, bool(MAKES_WAIT & tags), arguments


def _run(op, *args, **kwargs):
    """Any operation on the device: refuse what mixes, count, and run it on the CPU."""
    name, view, scalars, waits, arguments = _traits(op)
    if view:
        return op.redispatch(ON_CPU, *args, **kwargs)
    if name == "aten::_copy_from":
        return _copied(*args, **kwargs)
    if name in INDEXING:
        args, waits = _indices(args, counted=name == READS_BY_INDEX)
    given = dict(zip(arguments, args, strict=False)) | kwargs
    if name not in TAKES_NUMBERS:
        for key, one in given.items():
            if arguments[key][0] and type(one) in NUMBERS:
                given[key] = torch.tensor(one, dtype=NUMBERS[type(one)])
    written = {id(one) for key, one in given.items() if arguments[key][1]}
    aliases, growing, strangers = {}, [], []

    def to_cpu(leaf):
        if isinstance(leaf, torch.device):
            return torch.device("cpu")
        if not is_ours(leaf):
            strangers.extend([leaf] if isinstance(leaf, Tensor) else [])
            return leaf
        alias = _alias(leaf)
        if id(leaf) in written and (name == "aten::resize_" or leaf.numel() < 2):
            alias = alias.clone()  # memory that can grow
            growing.append((leaf, alias))
        aliases[id(alias)] = leaf, alias
        return alias

    given = _mapped(to_cpu, given)
    if aliases and any(stranger.dim() or not scalars for stranger in strangers):
        raise RuntimeError(f"Expected all tensors to be on the same device, but found {NAME}:0 and cpu! ({name})")
    if waits:
        traffic.count("waits", 1)
    result = op(**given)
    for leaf, alias in growing:
        if leaf.shape == alias.shape:
            _alias(leaf).copy_(alias)
        else:
            new = _relabelled(alias, PRETEND_TYPE)
            put = torch.ops.aten.set_.source_Storage_storage_offset
            put.redispatch(ON_CPU, leaf, new.untyped_storage(), 0, new.shape, new.stride())

    def to_device(leaf):
        if id(leaf) in aliases:
            return aliases[id(leaf)][0]
        return _relabelled(leaf, PRETEND_TYPE) if isinstance(leaf, Tensor) else leaf

    return _mapped(to_device, result)


def _copied(source, target, non_blocking=False):
    """To, from or within the device."""
    if is_ours(source) != is_ours(target):
        traffic.count("to_host" if is_ours(source) else "to_device", source.numel() * source.element_size())
    _alias(target).copy_(_alias(source))
    return target


def _indices(args, counted):
    """Indices may be the CPU's, and are copied then; a mask on the device makes the host wait, unless it gets one
    value. torch itself has found the places of a mask that is read by."""
    tensor, indices, *values = args
    waits, moved = False, []
    for index in indices:
        mask = index is not None and index.dtype in (torch.bool, torch.uint8)
        if isinstance(index, Tensor) and is_ours(tensor) and not is_ours(index):
            index = _relabelled(index, PRETEND_TYPE)
        elif mask and not counted:
            waits = waits or values[0].numel() != 1 or sum(one is not None for one in indices) > 1
        moved.append(index)
    return (tensor, moved, *values), waits


_setup_privateuseone_for_python_backend(NAME)
_everything, _aten = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
_everything.fallback(_run, "PrivateUse1")
for _name in ("convolution", "native_group_norm", "native_layer_norm"):  # torch's own for new devices fail or differ
    _own = "convolution_overrideable" if _name == "convolution" else _name
    _aten.impl(_own, partial(_run, getattr(torch.ops.aten, _name).default), "PrivateUse1")
