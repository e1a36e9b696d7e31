"""Masked language models of the transformers library: LLaDA, Dream, LLaDA2, SDAR, and any BERT is an absorbing-kernel
posterior."""

import copy
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Evaluation, Model, SplitModel, log_posterior, weights_fingerprint, width_of
from eigentime.models.checkpoints.families import ANY, FAMILIES, Family, Sight, family_of
from eigentime.models.checkpoints.key_values import Kept, Layers, Taking, between, taking
from eigentime.models.checkpoints.scope import STALE, CacheKind, Finished, Scope, Whole
from eigentime.models.projection import projected
from eigentime.process import Absorbing, LogLinear, Process

OFFSET = ("roberta", "camembert", "longformer")
"""Families whose positions begin behind the padding token's."""
VOCABULARY = "vocab.txt"
"""One word per line, as BERT's tokenizers keep it."""
TOKENIZER_FILES = ("tokenizer_config.json", "special_tokens_map.json")
TRIED = 8
"""Tokens on which it is tried what a network can do."""


class MaskedLM(Model):
    """A network that returns logits over clean tokens and takes no time.

    Sequences may begin with `PADDING`, which nobody sees; networks that would see it all the same are asked for
    sequences of one length at a time.
    """

    predicts, time_dependent, takes_padding = "posterior", False, True

    def __init__(
        self,
        network: Any,
        process: Process,
        length: int,
        name: str,
        family: Family = ANY,
        block: int | None = None,
        padding: int | None = None,
    ) -> None:
        self.network, self.process, self.length, self.name = network.eval(), process, length, name
        self.family, self.block, self.padding = family, block, padding
        """How it is asked, how long the blocks are that do not see later ones, and which token fills sequences up at
        their end: nobody attends to it."""
        self.scope: Scope = Whole()
        self.cache: CacheKind | None = None
        """Which keys and values are kept although they change, in blocks."""
        self.kept = Kept()
        self.tried: dict[str, Any] = {}
        """What was found out about the network; as what is kept, it is shared with the same model of other blocks."""

    @property
    def device(self) -> torch.device:
        device: torch.device = next(self.network.parameters()).device
        return device

    @property
    def width(self) -> int:
        return width_of(self.network)

    def to(self, device: torch.device | str) -> "MaskedLM":
        self.network.to(device)
        self.kept.clear()
        return self

    def cast(self, dtype: torch.dtype) -> None:
        self.network.to(dtype)
        self.kept.clear()

    @property
    def fingerprint(self) -> str:
        return weights_fingerprint(self.name, self.network.state_dict())

    def window(self, start: int, stop: int) -> "MaskedLM":
        scope: Scope = self.scope
        if self.cache is not None:
            scope = STALE[self.cache](start, stop)
        elif self.block is not None:
            scope = Finished(start, stop)
        return self._with(scope=scope)

    def cached(self, kind: str) -> "MaskedLM":
        if kind not in STALE:
            raise EigentimeError(f"The kinds of cache are {' and '.join(STALE)}, not {kind!r}.")
        if self.block is not None:
            raise EigentimeError(f"{self.name} sees no later block, so that its cache is exact and always used.")
        if self.taking is None:
            raise EigentimeError(
                f"{self.name} does not take keys and values of tokens that are not computed again; load it with a "
                "modelling file that does, such as Fast-dLLM's."
            )
        return self._with(cache=kind, name=f"{self.name} with a {kind} cache")

    def _with(self, **changed: Any) -> "MaskedLM":
        other = copy.copy(self)
        for name, value in changed.items():
            setattr(other, name, value)
        return other

    @property
    def taking(self) -> Taking | None:
        """How the network takes keys and values; None where it takes none, or does not find with them what it finds
        without."""
        if "taking" not in self.tried:
            self.tried["taking"] = self._try_keeping()
        found: Taking | None = self.tried["taking"]
        return found

    def _try_keeping(self) -> Taking | None:
        found = taking(self.network, self.family.with_cache)
        if found is None:
            return None
        count = self.block or TRIED // 4
        first, last = count, 2 * count
        x = torch.arange(3 * count, device=self.device)[None] % self.process.kernel.size
        with torch.no_grad():
            try:
                whole, layers = found.ask(self.network, x, [], [], self._told(x, 0, 3 * count))
                before, after = between(layers, 0, first), between(layers, last, None)
                if self.block is not None:  # nobody sees what comes after
                    x, after = x[:, :last], []
                rows, _ = found.ask(self.network, x[:, first:last], before, after, self._told(x, first, last))
            except (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, IndexError, KeyError):
                return None
        same = rows.shape == whole[:, first:last].shape and _close(rows, whole[:, first:last])
        return found if same else None

    @property
    def pads(self) -> bool:
        """Whether padding before a prompt changes nothing: what stands there is not seen, and places do not matter."""
        if "pads" not in self.tried:
            self.tried["pads"] = self._try_padding()
        return bool(self.tried["pads"])

    def _try_padding(self) -> bool:
        if not self.family.moves:
            return False
        count = self.block or TRIED // 4
        x = torch.arange(3 * count, device=self.device)[None] % self.process.kernel.size
        filled = [torch.cat([torch.full((1, count), token, device=self.device), x], 1) for token in (0, 1)]
        present = torch.arange(4 * count, device=self.device)[None] >= count
        with torch.no_grad():
            told = self.family.told(Sight(present, self.block, 0, 4 * count), self._dtype)
            one, other = (self.network(input_ids=tokens, **told).logits[:, count:] for tokens in filled)
            alone = self.network(input_ids=x, **self._told(x, 0, 3 * count)).logits
        return _close(one, other) and _close(one, alone)

    @property
    def _dtype(self) -> torch.dtype:
        dtype: torch.dtype = next(self.network.parameters()).dtype
        return dtype

    def _told(self, x: Int[Tensor, "b length"], first: int, last: int) -> dict[str, Any]:
        present = x >= 0 if self.padding is None else (x >= 0) & (x != self.padding)
        return self.family.told(Sight(present, self.block, first, last), self._dtype)

    def output(self, x: Int[Tensor, "b length"]) -> Float[Tensor, "b length d"]:
        """What the network returns, one row for each token."""
        with torch.no_grad():
            x = x.to(self.device)
            rows = self.network(input_ids=x.clamp(min=0), **self._told(x, 0, x.shape[1])).logits
        return self._shifted(x, rows, 0)

    def ask(
        self, x: Int[Tensor, "b length"], first: int, last: int, before: Layers, after: Layers | None = None
    ) -> tuple[Float[Tensor, "b window d"], Layers]:
        """Rows for tokens first … last-1 of sequences whose other keys and values are kept, and the window's own."""
        assert self.taking is not None
        with torch.no_grad():
            x = x.to(self.device)
            window = x[:, first:last].clamp(min=0)
            rows, layers = self.taking.ask(self.network, window, before, after or [], self._told(x, first, last))
        return self._shifted(x, rows, first), layers

    def _shifted(
        self, x: Int[Tensor, "b length"], rows: Float[Tensor, "b window d"], first: int
    ) -> Float[Tensor, "b window d"]:
        """Rows in the place of the tokens they speak of; of a sequence's first token only its own row speaks."""
        if not self.family.shifted:
            return rows
        earlier = torch.cat([rows[:, :1], rows[:, :-1]], 1)
        follows = torch.nn.functional.pad(x[:, :-1] >= 0, (1, 0))[:, first : first + rows.shape[1], None]
        return torch.where(follows, earlier, rows)

    def rows(self, x: Int[Tensor, "b length"], where: Bool[Tensor, "b length"]) -> Float[Tensor, "n d"]:
        """The network's rows for the tokens of `where`, in row-major order."""
        missing = (x < 0).sum(1).cpu()
        lengths = missing.unique().tolist()
        if lengths == [0]:
            return self.scope.rows(self, x, where)
        if bool((x.cpu() < 0).diff(dim=1, prepend=torch.ones(len(x), 1, dtype=torch.bool)).sum(1).gt(1).any()):
            raise EigentimeError("Padding stands before a prompt, in one piece; nothing else can be padded.")
        if self.pads:
            return self.scope.rows(self, x, where)
        sequence = where.cpu().nonzero()[:, 0]
        found: Tensor | None = None
        for count in lengths:  # without their padding, those of one length at a time
            index = (missing == count).nonzero().squeeze(1).to(x.device)
            scope = self.scope.moved(count)
            rows = scope.rows(self, x[index][:, count:], where[index.to(where.device)][:, count:])
            found = rows.new_empty(len(sequence), rows.shape[-1]) if found is None else found
            found[(missing == count)[sequence].to(rows.device)] = rows
        assert found is not None
        return found

    def everywhere(self, x: Int[Tensor, "b length"]) -> Float[Tensor, "b length d"]:
        """The network's rows for all tokens; what they say of padding means nothing."""
        rows = self.rows(x, x >= 0)
        whole = rows.new_zeros(*x.shape, rows.shape[-1])
        whole[(x >= 0).to(rows.device)] = rows
        return whole

    def __call__(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"] | None = None,
        cond: Tensor | None = None,
    ) -> Float[Tensor, "... size"]:
        logits = self.everywhere(x) if where is None else self.rows(x, where)
        return log_posterior(_precise(logits), self.process.kernel)


class SplitMaskedLM(MaskedLM, SplitModel):
    """The same with the vocabulary projection taken out of the network, to be run on the rows that are asked for."""

    def __init__(self, model: MaskedLM, projection: torch.nn.Linear) -> None:
        described = (model.process, model.length, model.name, model.family, model.block, model.padding)
        super().__init__(model.network, *described)
        self.projection = projection

    def to(self, device: torch.device | str) -> "SplitMaskedLM":
        self.projection.to(device)
        super().to(device)
        return self

    def cast(self, dtype: torch.dtype) -> None:
        self.projection.to(dtype)
        super().cast(dtype)

    @property
    def fingerprint(self) -> str:
        weights = {**self.network.state_dict(), **self.projection.state_dict(prefix="projection.")}
        return weights_fingerprint(self.name, weights)

    def hidden(
        self, x: Int[Tensor, "b length"], t: Float[Tensor, " b"], cond: Tensor | None = None
    ) -> Float[Tensor, "b length d"]:
        return self.everywhere(x)

    def head(self, rows: Float[Tensor, "... d"]) -> Float[Tensor, "... size"]:
        with torch.no_grad():
            return self.process.kernel.forbid_(_precise(projected(self.projection, rows).clone()))

    def __call__(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"] | None = None,
        cond: Tensor | None = None,
    ) -> Float[Tensor, "... size"]:
        return self.head(self.everywhere(x) if where is None else self.rows(x, where)).log_softmax(-1)

    def evaluate(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"],
        cond: Tensor | None = None,
    ) -> Evaluation:
        return Evaluation(self, self.rows(x, where))


def split(model: MaskedLM) -> MaskedLM:
    """The model in two parts, where its projection can be taken out and put behind again without changing anything;
    else as it is."""
    network = model.network
    projection = network.get_output_embeddings() if hasattr(network, "get_output_embeddings") else None
    if not isinstance(projection, torch.nn.Linear):
        return model
    tried = torch.arange(min(TRIED, model.length))[None] % model.process.kernel.size
    before = model(tried, torch.zeros(1, dtype=torch.float64))
    place = next(name for name, part in network.named_modules() if part is projection)
    network.set_submodule(place, torch.nn.Identity())
    parts = SplitMaskedLM(model, projection)
    try:
        after = parts(tried, torch.zeros(1, dtype=torch.float64))
        same = after.shape == before.shape and torch.allclose(after.exp(), before.exp(), atol=1e-5)
    except (RuntimeError, TypeError, ValueError, AttributeError):  # a network that does more with its logits
        same = False
    if not same:
        network.set_submodule(place, projection)
    return parts if same else model


def _close(one: Tensor, other: Tensor) -> bool:
    """Whether two outputs of a network are the same but for rounding."""
    rounding = max(16 * torch.finfo(one.dtype).eps, 1e-4)
    return bool((one - other).abs().max() <= rounding * other.abs().max().clamp(min=1.0))


def _precise(rows: Tensor) -> Tensor:
    """At least in single precision."""
    return rows if rows.dtype == torch.float64 else rows.float()


def describes(config: dict[str, Any]) -> bool:
    """Whether a configuration is that of a masked language model."""
    kind = str(config.get("model_type", ""))
    kinds = " ".join([kind, *map(str, config.get("architectures") or ())]).lower()
    return "formaskedlm" in kinds or any(family.name in kinds for family in FAMILIES) or kind in _masked_kinds()


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
    block_length: int | None,
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
    family = family_of(kind)
    block = family.block_of(config, block_length)
    auto = getattr(transformers, family.auto)
    try:
        network = auto.from_pretrained(path, trust_remote_code=trust_remote_code, **{"dtype": "auto", **handed})
    except Exception as error:
        detail = (str(error).splitlines() or [type(error).__name__])[0]
        raise EigentimeError(f"transformers cannot load {source} ({detail}).") from None
    size = network.config.vocab_size
    mask = config.get("mask_token_id")
    mask = _tokenizer_mask(transformers, path) if mask is None else mask
    mask = family.mask if mask is None else mask
    if mask is None or not 0 <= mask < size:
        raise EigentimeError(
            f"{source} does not say which of its {size} tokens is the mask; keep its tokenizer with it."
        )
    longest = config.get("max_position_embeddings") or config.get("max_sequence_length")
    if longest and any(other in kind for other in OFFSET):
        longest -= network.config.pad_token_id + 1
    if length is not None and longest is not None and length > longest:
        raise EigentimeError(f"{source} takes at most {longest} tokens, not {length}.")
    length = length or longest
    if length is None:
        raise EigentimeError(f"{source} takes any length; say which with et.load(…, length=…).")
    process = Process(Absorbing(size, mask=mask), LogLinear())
    # LLaDA and its kind were trained to look at the tokens that fill their texts up
    padding = config.get("pad_token_id") if family is ANY else None
    return split(MaskedLM(network, process, length, source, family, block, padding))


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
