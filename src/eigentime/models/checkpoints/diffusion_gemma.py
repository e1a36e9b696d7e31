"""DiffusionGemma: block diffusion with the uniform kernel, one canvas of tokens after the other."""

from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Evaluation, SplitModel, row_pieces, rows_at, weights_fingerprint, width_of
from eigentime.models.checkpoints.asked import Asked
from eigentime.models.contexts import Contexts
from eigentime.models.projection import projected
from eigentime.packages import need
from eigentime.process import LogLinear, Process, Uniform

KIND = "diffusion_gemma"
TESTED = ("5.22", "5.23")
"""Versions of transformers: from, and below."""
EPSILON = 1e-8
"""α at t = 1. It must be small against 1/vocabulary, or a token of pure noise would count as evidence of itself."""
SelfConditioning = Literal["off", "once", "previous"]


class DiffusionGemma(SplitModel):
    """A canvas given what comes before it: `cond` holds the prompt and all earlier canvases, (B, P) tokens.

    The context is encoded once into a cache that all evaluations read; without one the canvas follows the token that
    begins a text. The network takes no time. It may be told what it thought of the canvas before (self-conditioning):

    off       nothing, as at the first step of its own sampler
    once      what it thinks of the same canvas without being told: two passes, and still a function of the canvas
    previous  what it thought at the step before, as its own sampler does: its law then depends on the path, so it can
              be sampled but not measured
    """

    predicts, time_dependent = "posterior", False

    def __init__(self, network: Any, name: str, self_conditioning: SelfConditioning = "off") -> None:
        text = network.config.get_text_config(decoder=True)
        self.network, self.name = network.eval(), name
        self.length = int(network.config.canvas_length)
        self.process = Process(Uniform(text.vocab_size), LogLinear(EPSILON))
        self.beginning = text.bos_token_id
        self.contexts = Contexts(network.model.encoder, text)
        self._condition(self_conditioning)

    def _condition(self, how: SelfConditioning) -> None:
        if how not in get_args(SelfConditioning):
            raise EigentimeError(f"self_conditioning is one of {', '.join(get_args(SelfConditioning))}, not {how!r}.")
        self.self_conditioning = how
        self.passes = 2 if how == "once" else 1

    def conditioned(self, how: SelfConditioning) -> "DiffusionGemma":
        """The same network and what it has encoded, with another kind of self-conditioning."""
        other = DiffusionGemma(self.network, self.name, how)
        other.contexts = self.contexts
        return other

    @property
    def device(self) -> torch.device:
        device: torch.device = self.network.device
        return device

    @property
    def width(self) -> int:
        return width_of(self.network)

    def to(self, device: torch.device | str) -> "DiffusionGemma":
        self.network.to(device)
        self.contexts.forget()
        return self

    def cast(self, dtype: torch.dtype) -> None:
        self.network.to(dtype)
        self.contexts.forget()

    @property
    def fingerprint(self) -> str:
        return (
            f"{weights_fingerprint(self.name, self.network.state_dict())}, self-conditioning {self.self_conditioning}"
        )

    def hidden(
        self, x: Int[Tensor, "b length"], t: Float[Tensor, " b"], cond: Tensor | None = None
    ) -> Float[Tensor, "b length d"]:
        if self.self_conditioning == "previous":
            raise EigentimeError(
                f"{self.name} looks at its previous step, so that its law depends on the path: measure and certify it "
                'with model.conditioned("off") or model.conditioned("once").'
            )
        hidden = self.decoded(x, cond)
        return hidden if self.self_conditioning == "off" else self.decoded(x, cond, self.soft(hidden))

    def evaluate_along(
        self,
        path: dict[int, Tensor],
        index: Int[Tensor, " b"],
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"],
        cond: Tensor | None = None,
    ) -> Evaluation:
        if self.self_conditioning != "previous":
            return self.evaluate(x, t, where, cond)
        rows = index.tolist()
        before = torch.stack([path[row] for row in rows]) if all(row in path for row in rows) else None
        hidden = self.decoded(x, cond, before)
        path.update(zip(rows, self.soft(hidden), strict=True))
        return Evaluation(self, rows_at(hidden, where))

    def head(self, rows: Float[Tensor, "... d"]) -> Float[Tensor, "... size"]:
        with torch.no_grad():
            cap = self.network.final_logit_softcapping
            return projected(self.network.lm_head, rows).float().div_(cap).tanh_().mul_(cap)

    def decoded(
        self, x: Int[Tensor, "b length"], cond: Tensor | None, soft: Float[Tensor, "b length d"] | None = None
    ) -> Float[Tensor, "b length d"]:
        """The decoder's rows for a canvas, told these mean embeddings of what was thought of it before."""
        context = self._context(x, cond)
        positions = torch.arange(context.shape[1], context.shape[1] + x.shape[1], device=self.device)[None]
        decoder = self.network.model.decoder
        hook = decoder.self_conditioning.register_forward_pre_hook(
            lambda module, arguments: arguments if soft is None else (arguments[0], soft.to(arguments[0]))
        )
        try:
            with torch.no_grad():
                states: Tensor = decoder(
                    decoder_input_ids=x.to(self.device),
                    past_key_values=self.contexts.of(context, self.device),
                    decoder_position_ids=positions,
                ).last_hidden_state
        finally:
            hook.remove()
        return states

    def soft(self, hidden: Float[Tensor, "b length d"]) -> Float[Tensor, "b length d"]:
        """Σ_y q(y)·embedding(y) of every token, piece by piece: what self-conditioning is told, in little memory."""
        embedding = self.network.model.decoder.embed_tokens
        rows, weight = hidden.flatten(0, 1), embedding.weight
        told = torch.empty_like(rows)
        with torch.no_grad():
            for piece in row_pieces(len(rows), self.process.kernel.size):
                told[piece] = self.head(rows[piece]).softmax(-1).to(weight.dtype) @ weight
        shared: Tensor = (told * embedding.embed_scale.to(told.dtype)).view_as(hidden)
        return shared

    def _context(self, x: Int[Tensor, "b length"], cond: Tensor | None) -> Int[Tensor, "b p"]:
        if cond is None:
            return torch.full((len(x), 1), self.beginning)
        if cond.ndim != 2 or cond.dtype.is_floating_point or len(cond) != len(x) or not cond.shape[1]:
            raise EigentimeError(
                f"{self.name} takes what comes before a canvas as cond=tokens of shape (N, P), not {tuple(cond.shape)}."
            )
        return cond


def describes(asked: Asked) -> bool:
    """Whether a configuration is DiffusionGemma's."""
    return asked.config.get("model_type") == KIND and asked.block_length is None


def load(asked: Asked) -> DiffusionGemma:
    """The network through transformers, which knows it: nothing that comes with the weights is executed."""
    need("transformers", "hub", TESTED)
    try:
        from transformers import DiffusionGemmaForBlockDiffusion
    except ImportError:
        raise EigentimeError("DiffusionGemma needs transformers 5.22 or newer: pip install 'eigentime[hub]'.") from None
    canvas = asked.config.get("canvas_length", asked.length)
    if asked.length not in (None, canvas):
        raise EigentimeError(f"{asked.source} has canvases of {canvas} tokens; leave `length` out.")
    try:
        network = DiffusionGemmaForBlockDiffusion.from_pretrained(asked.path, **{"dtype": "auto", **asked.handed})
    except Exception as error:
        detail = (str(error).splitlines() or [type(error).__name__])[0]
        raise EigentimeError(f"transformers cannot load {asked.source} ({detail}).") from None
    return DiffusionGemma(network, asked.source)
