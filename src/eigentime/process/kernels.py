"""The kernels by name: one file each, and one line here."""

from typing import Any

from eigentime.errors import EigentimeError
from eigentime.process.absorbing import Absorbing
from eigentime.process.kernel import Arrays, Kernel
from eigentime.process.mixture import Mixture
from eigentime.process.rate_matrix import RateMatrix
from eigentime.process.uniform import Uniform

KERNELS: dict[str, type[Kernel]] = {kernel.name: kernel for kernel in (Absorbing, Uniform, RateMatrix, Mixture)}


def kernel_from_spec(spec: dict[str, Any], arrays: Arrays | None = None, for_grids: bool = False) -> Kernel:
    """The kernel that `Kernel.spec` and `Kernel.arrays` described, or one that serves to lay out grids."""
    if spec.get("name") not in KERNELS:
        raise EigentimeError(f"Unknown kernel {spec.get('name')!r}; known are {', '.join(KERNELS)}.")
    known = KERNELS[spec["name"]]
    return (known.for_grids if for_grids else known.from_spec)(spec, arrays or {})
