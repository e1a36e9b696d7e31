"""Masked language models of the transformers library: LLaDA, Dream, and any BERT is an absorbing-kernel posterior."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Model, SplitModel, log_posterior, rows_at, weights_fingerprint, width_of
from eigentime.models.projection import projected
from eigentime.process import Absorbing, LogLinear, Process

MASKS = {"llada": 126336, "dream": 151666}
"""Masks of families whose configurations may not name theirs."""
OFFSET = ("roberta", "camembert", "longformer")
"""Families whose positions begin behind the padding token's."""
VOCABULARY = "vocab.txt"
"""One word a line, as BERT's tokenizers keep it."""
TOKENIZER_FILES = ("tokenizer_config.json", "special_tokens_map.json")


class MaskedLM(Model):
    """A network that returns logits over clean tokens and takes no time."""

    predicts, time_dependent = "posterior", False

    def __init__(
        self, network: Any, process: Process, length: int, name: str, shifted: bool, padding: int | None = None
    ) -> None:
        self.network, self.process, self.length, self.name = network.eval(), process, length, name
        self.shifted, self.padding = shifted, padding
        """Whether row i of the output speaks of token i + 1, as in models that began as left-to-right ones (Dream), and
        which token fills sequences up: nobody attends to it."""

    @property
    def device(self) -> torch.device:
        device: torch.device = next(self.network.parameters()).device
        return device

    @property
    def width(self) -> int:
        return width_of(self.network)

    def to(self, device: torch.device | str) -> "MaskedLM":
        self.network.to(device)
        return self

    def cast(self, dtype: torch.dtype) -> None:
        self.network.to(dtype)

    @property
    def fingerprint(self) -> str:
        return weights_fingerprint(self.name, self.network.state_dict())

    def output(self, x: Int[Tensor, "b length"]) -> Float[Tensor, "b length d"]:
        """What the network returns, one row for each token."""
        with torch.no_grad():
            x = x.to(self.device)
            seen = {} if self.padding is None else {"attention_mask": (x != self.padding).long()}
            rows = self.network(input_ids=x, **seen).logits
        return torch.cat([rows[:, :1], rows[:, :-1]], 1) if self.shifted else rows

    def __call__(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"] | None = None,
        cond: Tensor | None = None,
    ) -> Float[Tensor, "... size"]:
        logits = self.output(x)
        rows = logits if where is None else rows_at(logits, where)
        return log_posterior(rows.float(), self.process.kernel)


class SplitMaskedLM(MaskedLM, SplitModel):
    """The same with the vocabulary projection taken out of the network, to be run on the rows that are asked for."""

    def __init__(
        self, network: Any, projection: torch.nn.Linear, process: Process, length: int, name: str, *how: Any
    ) -> None:
        super().__init__(network, process, length, name, *how)
        self.projection = projection

    def to(self, device: torch.device | str) -> "SplitMaskedLM":
        self.projection.to(device)
        self.network.to(device)
        return self

    def cast(self, dtype: torch.dtype) -> None:
        self.projection.to(dtype)
        self.network.to(dtype)

    @property
    def fingerprint(self) -> str:
        weights = {**self.network.state_dict(), **self.projection.state_dict(prefix="projection.")}
        return weights_fingerprint(self.name, weights)

    def hidden(
        self, x: Int[Tensor, "b length"], t: Float[Tensor, " b"], cond: Tensor | None = None
    ) -> Float[Tensor, "b length d"]:
        return self.output(x)

    def head(self, rows: Float[Tensor, "... d"]) -> Float[Tensor, "... size"]:
        with torch.no_grad():
            return self.process.kernel.forbid_(projected(self.projection, rows).float())

    __call__ = SplitModel.__call__


def split(model: MaskedLM) -> MaskedLM:
    """The model in two parts, where its projection can be taken out and put behind again without changing anything;
    else as it is."""
    network = model.network
    projection = network.get_output_embeddings() if hasattr(network, "get_output_embeddings") else None
    if not isinstance(projection, torch.nn.Linear):
        return model
    tried = torch.arange(min(8, model.length))[None] % model.process.kernel.size
    before = model(tried, torch.zeros(1, dtype=torch.float64))
    place = next(name for name, part in network.named_modules() if part is projection)
    network.set_submodule(place, torch.nn.Identity())
    parts = SplitMaskedLM(network, projection, model.process, model.length, model.name, model.shifted, model.padding)
    try:
        after = parts(tried, torch.zeros(1, dtype=torch.float64))
        same = after.shape == before.shape and torch.allclose(after.exp(), before.exp(), atol=1e-5)
    except (RuntimeError, TypeError, ValueError, AttributeError):  # a network that does more with its logits
        same = False
    if not same:
        network.set_submodule(place, projection)
    return parts if same else model


def describes(config: dict[str, Any]) -> bool:
    """Whether a configuration is that of a masked language model."""
    kind = str(config.get("model_type", ""))
    kinds = " ".join([kind, *map(str, config.get("architectures") or ())]).lower()
    return "formaskedlm" in kinds or any(family in kinds for family in MASKS) or kind in _masked_kinds()


def _masked_kinds() -> Collection[str]:
    """Families that transformers knows as masked language models, whatever class a checkpoint says it is of."""
    try:
        from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES
    except ImportError:
        return ()
    return MODEL_FOR_MASKED_LM_MAPPING_NAMES


def load_masked_lm(
    source: str,
    path: Path,
    config: dict[str, Any],
    length: int | None,
    trust_remote_code: bool,
    handed: dict[str, Any],
) -> MaskedLM:
    """The network through transformers; code that comes with it runs only if `trust_remote_code` says so."""
    try:
        import transformers
    except ImportError:
        raise EigentimeError("Masked language models need transformers: pip install 'eigentime[hub]'.") from None
    if config.get("auto_map") and not trust_remote_code:
        raise EigentimeError(
            f"{source} brings Python code of its own; read it, and if you trust it load with trust_remote_code=True."
        )
    kind = str(config.get("model_type", "")).lower()
    family = next((name for name in MASKS if name in kind), None)
    auto = transformers.AutoModel if family else transformers.AutoModelForMaskedLM
    try:
        network = auto.from_pretrained(path, trust_remote_code=trust_remote_code, **{"dtype": "auto", **handed})
    except Exception as error:
        detail = (str(error).splitlines() or [type(error).__name__])[0]
        raise EigentimeError(f"transformers cannot load {source} ({detail}).") from None
    size = network.config.vocab_size
    mask = config.get("mask_token_id")
    mask = _tokenizer_mask(transformers, path) if mask is None else mask
    mask = MASKS.get(family or "") if mask is None else mask
    if mask is None or not 0 <= mask < size:
        raise EigentimeError(
            f"{source} does not say which of its {size} tokens is the mask; keep its tokenizer with it."
        )
    longest = config.get("max_position_embeddings") or config.get("max_sequence_length")
    if longest and any(family in kind for family in OFFSET):
        longest -= network.config.pad_token_id + 1
    if length is not None and longest is not None and length > longest:
        raise EigentimeError(f"{source} takes at most {longest} tokens, not {length}.")
    length = length or longest
    if length is None:
        raise EigentimeError(f"{source} takes any length; say which with et.load(…, length=…).")
    process = Process(Absorbing(size, mask=mask), LogLinear())
    padding = None if family else config.get("pad_token_id")  # LLaDA and Dream were trained to look at theirs
    return split(MaskedLM(network, process, length, source, family == "dream", padding))


def _tokenizer_mask(transformers: Any, path: Path) -> int | None:
    if (path / VOCABULARY).is_file():
        words = (path / VOCABULARY).read_text(encoding="utf-8", errors="replace").splitlines()
        return words.index("[MASK]") if "[MASK]" in words else None
    if not any((path / name).is_file() for name in TOKENIZER_FILES):
        return None
    try:
        mask: int | None = transformers.AutoTokenizer.from_pretrained(path).mask_token_id
    except Exception:
        return None
    return mask
