"""A forward process: a kernel and a noise curve together."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.arguments import kind, settle, shown
from eigentime.errors import EigentimeError
from eigentime.process.kernel import Arrays, DenseKernel, Kernel, Rows, Tokens, column
from eigentime.process.kernels import kernel_from_spec
from eigentime.process.noise import Noise, Times, noise_from_spec


@dataclass(frozen=True)
class Process:
    """Every token follows `kernel` at the speed of `noise`, independently of the others."""

    kernel: Kernel
    noise: Noise

    def __post_init__(self) -> None:
        settle(
            self,
            kernel=kind(Kernel, "a kernel such as et.Absorbing(size)"),
            noise=kind(Noise, "a noise curve such as et.LogLinear()"),
        )

    @property
    def absorbing(self) -> bool:
        """Whether the kernel masks tokens."""
        return self.kernel.mask is not None

    @property
    def mask(self) -> int:
        """The mask; refused on kernels without one."""
        if self.kernel.mask is None:
            raise EigentimeError(f"This needs masked tokens, which the {self.kernel.name} kernel does not have.")
        return self.kernel.mask

    @property
    def dense(self) -> DenseKernel:
        """The kernel, where it has no mask; refused where it has one."""
        if not isinstance(self.kernel, DenseKernel):
            raise EigentimeError(f"This needs a kernel without a mask, which the {self.kernel.name} kernel is not.")
        return self.kernel

    def grid_alphas(self, times: Any) -> Float[np.ndarray, " k"]:
        """α at the times of a sampling grid, with its ends where generation really starts and ends.

        Generation starts from the prior, so that α(1) := 0 on kernels with a mask, and the step to t = 0 goes to the
        data, so α(0) := 1 even where the noise curve stops short of it.
        """
        times = np.asarray(times, dtype=np.float64)
        alphas = self.noise.alpha(times).numpy().copy()
        alphas[times == 1.0] = self.kernel.first_alpha(self.noise.alpha(1.0).item())
        alphas[times == 0.0] = 1.0
        return alphas

    def corrupt(
        self, x0: Int[Tensor, "b length"], t: Times, jump: Float[Tensor, "b length"], replace: Float[Tensor, "b length"]
    ) -> Int[Tensor, "b length"]:
        """x_t given x_0 and uniforms. The same uniforms at another t give a coupled state: masks are nested.

        `jump` decides whether a token has jumped (α < jump), `replace` where to; t is a scalar or one per row.
        """
        alpha = self.noise.alpha(t)
        alpha = (alpha[:, None] if alpha.ndim else alpha).expand(x0.shape)
        return self.kernel.corrupt(x0, alpha, jump, replace)

    def forward(self, x: Tokens, s: Times, t: Times, u: Float[Tensor, "..."]) -> Tokens:
        """Carry x from time s on to a later time t with one uniform a token."""
        if torch.any(torch.as_tensor(s) > torch.as_tensor(t)):
            raise EigentimeError("A forward transition needs s ≤ t.")
        return self.kernel.carry(x, self.noise.alpha(t).expand(x.shape), u, self.noise.alpha(s).expand(x.shape))

    def transition(self, s: float, t: float) -> Float[Tensor, "size size"]:
        """P(x_t = y | x_s = x) as a matrix with rows x."""
        if s > t:
            raise EigentimeError(f"A forward transition needs s ≤ t, not s = {s} and t = {t}.")
        return self.kernel.transition(self.noise.alpha(t), self.noise.alpha(s))

    def generator(self, t: float) -> Float[Tensor, "size size"]:
        """The forward generator β(t)·Q of one token, rows = from."""
        rates = self.noise.beta(t) * self.kernel.rates_out(torch.arange(self.kernel.size), self.noise.alpha(t))
        return rates - torch.diag(rates.sum(1))

    def prior(self, u: Float[Tensor, "..."]) -> Tokens:
        """Draw the noise that generation starts from, one uniform a token."""
        return self.kernel.prior(u, self.noise.alpha(1.0).item())

    def reverse_rates(self, posterior: Rows, x: Tokens, t: Times) -> Rows:
        """R̄(x → y) = β(t)·Q(y → x)·s_y for every y, zero at y = x."""
        return column(self.noise.beta(t), posterior) * self.kernel.flow(posterior, x, self.noise.alpha(t))

    def channel_entropy(self, s: float, t: float, marginal: Float[Tensor, " size"] | None = None) -> float:
        """H(x_t,i | x_s,i) of one token in nats; some kernels need the law `marginal` of x_0,i over all ids."""
        return self.kernel.channel_entropy(self.noise.alpha(s), self.noise.alpha(t), marginal)

    def check_tokens(self, x: Tokens, what: str) -> None:
        """Refuse tokens that clean data of this process cannot hold."""
        bad = ~torch.isin(x, self.kernel.values.to(x.device))
        if bad.any():
            raise EigentimeError(
                f"{what} holds token {x[bad][0].item()}, which is not one of the {len(self.kernel.values)} values of "
                f"this {self.kernel.name} process (size {self.kernel.size})."
            )

    def spec(self) -> dict[str, Any]:
        """A JSON description for provenance."""
        return {"kernel": self.kernel.spec(), "noise": self.noise.spec()}


def process_from_spec(spec: dict[str, Any], arrays: Arrays | None = None, for_grids: bool = False) -> Process:
    """Rebuild the process that `Process.spec` described, with the arrays of its kernel where it has some."""
    return Process(kernel_from_spec(spec["kernel"], arrays, for_grids), noise_from_spec(spec["noise"]))


def as_tokens(values: Any, what: str) -> Tokens:
    """Integer tokens of any kind (arrays, lists, tensors on any device) as int64 on the CPU."""
    try:
        tokens = values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))
    except (TypeError, ValueError, RuntimeError):
        raise EigentimeError(f"{what} must be an array of integer tokens.") from None
    if tokens.dtype.is_floating_point or tokens.dtype.is_complex or tokens.dtype == torch.bool:
        raise EigentimeError(f"{what} must hold integer tokens, not {tokens.dtype}.")
    return tokens.long().cpu()


def given_tokens(given: Any, shape: torch.Size) -> Int[Tensor, "b length"]:
    """Given tokens, (L,) or (N, L), for every sequence."""
    tokens = as_tokens(given, "`given`")
    try:
        full: Tensor = tokens.expand(shape)
    except RuntimeError:
        full = tokens[None]
    if tokens.ndim not in (1, 2) or full.shape != shape:
        raise EigentimeError(f"`given` has shape {tuple(tokens.shape)}, which does not fit {tuple(shape)}.")
    return full


def check_cond(cond: Any, rows: int, of: str) -> None:
    """Refuse a condition that is no tensor with one row for each of so many sequences."""
    if cond is not None and (not isinstance(cond, Tensor) or not cond.ndim or len(cond) != rows):
        raise EigentimeError(f"`cond` must be a tensor with one row for every {of} ({rows}), not {shown(cond)}.")


def expand_mask(fixed: Any, shape: torch.Size) -> Bool[Tensor, "b length"]:
    """A conditioning mask as a full (batch, length) tensor; None means that nothing is given."""
    if fixed is None:
        return torch.zeros(shape, dtype=torch.bool)
    try:
        fixed = torch.as_tensor(fixed).cpu()
    except (TypeError, ValueError, RuntimeError):
        raise EigentimeError("`fixed` must be an array of booleans.") from None
    if fixed.dtype != torch.bool:
        raise EigentimeError(f"`fixed` must hold booleans (which tokens are given), not {fixed.dtype}.")
    try:
        full: Tensor = fixed.expand(shape)
        return full
    except RuntimeError:
        raise EigentimeError(f"`fixed` has shape {tuple(fixed.shape)}, which does not fit {tuple(shape)}.") from None
