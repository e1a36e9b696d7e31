"""The kernels by name: one file each, and one line here."""

from typing import Any

from eigentime.errors import EigentimeError
from eigentime.process.absorbing import Absorbing
from eigentime.process.kernel import Arrays, Kernel
from eigentime.process.mixture import Mixture
from eigentime.process.rate_matrix import RateMatrix
from eigentime.process.uniform import Uniform

KERNELS: dict[str, type[Kernel]] = {kernel.name: kernel for kernel in (Absorbing, Uniform, RateMatrix, Mixture)}


def kernel_from_spec(spec: dict[str, Any], arrays: Arrays | None = None) -> Kernel:
    """The kernel that `Kernel.spec` and `Kernel.arrays` described."""
    if spec.get("name") not in KERNELS:
        raise EigentimeError(f"Unknown kernel {spec.get('name')!r}; known are {', '.join(KERNELS)}.")
    return KERNELS[spec["name"]].from_spec(spec, arrays or {})
