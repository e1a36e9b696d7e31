"""Masked language models of the transformers library from their files: which family, which mask, how long."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from eigentime.errors import EigentimeError
from eigentime.models.checkpoints.asked import Asked
from eigentime.models.checkpoints.families import ANY, FAMILIES, family_of
from eigentime.models.checkpoints.masked_lm import MaskedLM, split
from eigentime.packages import need
from eigentime.process import Absorbing, LogLinear, Process
from eigentime.reading import MOST_TEXT, Unreadable, check_inside, read_bytes, read_json

TESTED = ("4.57", "5.23")
"""Versions of transformers: from, and below."""
OFFSET = ("roberta", "camembert", "longformer")
"""Families whose positions begin behind the padding token's."""
VOCABULARY = "vocab.txt"
"""One word per line, as BERT's tokenizers keep it."""
TOKENIZER_FILES = ("tokenizer_config.json", "special_tokens_map.json")
MOST_LAYERS = 1000


def describes(asked: Asked) -> bool:
    """Whether a configuration is that of a masked language model."""
    config = asked.config
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


def load(asked: Asked) -> MaskedLM:
    """The network through transformers; code that comes with it runs only if `trust_remote_code` says so."""
    source, path, config, length = asked.source, asked.path, asked.config, asked.length
    trusted = asked.trust_remote_code
    transformers: Any = need("transformers", "hub", TESTED)
    own_code = bool(config.get("auto_map"))
    if own_code and not trusted:
        raise EigentimeError(
            f"{source} brings Python code of its own; read it, and if you trust it load with trust_remote_code=True."
        )
    _check_folder(path, config)
    kind = str(config.get("model_type", "")).lower()
    family = family_of(kind)
    block = family.block_of(config, asked.block_length)
    auto = getattr(transformers, family.auto)
    try:
        network = auto.from_pretrained(path, trust_remote_code=trusted, **{"dtype": "auto", **asked.handed})
    except Exception as error:
        detail = (str(error).splitlines() or [type(error).__name__])[0]
        older = f" Its Python code may want another version than {transformers.__version__}: 4.57 was tried."
        raise EigentimeError(
            f"transformers cannot load {source} ({type(error).__name__}: {detail}).{older if own_code else ''}"
        ) from None
    size = network.config.vocab_size
    mask = config.get("mask_token_id")
    mask = _tokenizer_mask(transformers, path, trusted) if mask is None else mask
    mask = family.mask if mask is None else mask
    if type(mask) is not int or not 0 <= mask < size:
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


def _check_folder(path: Path, config: dict[str, Any]) -> None:
    """What transformers would believe without looking: more layers than any network has, weights in other folders."""
    layers = {key: value for key, value in config.items() if "layer" in key and type(value) is int}
    if many := next((key for key, value in layers.items() if not 0 <= value <= MOST_LAYERS), None):
        raise EigentimeError(f"The configuration of {path} asks for {many} = {layers[many]}, which no network has.")
    for index in path.glob("*.index.json"):
        try:
            check_inside(read_json(index)["weight_map"].values())
        except (Unreadable, KeyError, TypeError, AttributeError) as error:
            raise EigentimeError(f"{index} cannot be used ({error}).") from None


def _tokenizer_mask(transformers: Any, path: Path, trusted: bool) -> int | None:
    if (path / VOCABULARY).is_file():
        words = read_bytes(path / VOCABULARY, MOST_TEXT).decode("utf-8", errors="replace").splitlines()
        return words.index("[MASK]") if "[MASK]" in words else None
    if not any((path / name).is_file() for name in TOKENIZER_FILES):
        return None
    try:
        mask: int | None = transformers.AutoTokenizer.from_pretrained(path, trust_remote_code=trusted).mask_token_id
    except Exception:
        return None
    return mask
