"""Token data for published language models: OpenWebText through `datasets`, documents packed as SEDD does."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime.data.packages import own_folder, say
from eigentime.errors import EigentimeError

HUB_ID = "Skylion007/openwebtext"
KINDS = {".jsonl": "json", ".json": "json", ".parquet": "parquet", ".txt": "text"}


def packed(documents: Iterable[str], tokenizer: Any, count: int, length: int = 1024) -> Int[Tensor, "n length"]:
    """Documents one after another with an end-of-text token behind each, cut into `count` sequences; the tail is
    dropped, and reading stops as soon as there is enough."""
    if tokenizer.eos_token_id is None:
        raise EigentimeError("This tokeniser has no end-of-text token, which documents are packed with.")
    tokens: list[int] = []
    for document in documents:
        tokens += [*tokenizer(document, add_special_tokens=False).input_ids, tokenizer.eos_token_id]
        if len(tokens) >= count * length:
            break
    found = min(count, len(tokens) // length)
    if not found:
        raise EigentimeError(f"The documents hold {len(tokens)} tokens, fewer than one sequence of {length}.")
    return torch.tensor(tokens[: found * length]).reshape(found, length)


def openwebtext() -> Iterator[str]:
    """Documents of $EIGENTIME_DATA/openwebtext (.jsonl or .parquet files with a column `text`, or .txt files, one
    document each), else of the hub's data set, streamed, so that only what is read is fetched."""
    try:
        from datasets import load_dataset
    except ImportError:
        raise EigentimeError("OpenWebText needs datasets: pip install 'eigentime[text]'.") from None
    folder = own_folder("openwebtext")
    try:
        if folder is not None:
            kind, files = _files(folder)
            options = {"sample_by": "document"} if kind == "text" else {}
            rows = load_dataset(kind, data_files=files, split="train", streaming=True, **options)
            say(f"Text from {folder}")
        else:
            rows = load_dataset(HUB_ID, split="train", streaming=True)
            say(f"Text from the hub's {HUB_ID}")
        for row in rows:
            if "text" not in row:
                raise EigentimeError("The documents have no column `text`.")
            yield row["text"]
    except EigentimeError:
        raise
    except Exception as error:  # datasets raises errors of many libraries
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise EigentimeError(
            f"OpenWebText cannot be read ({reason}); put .jsonl, .parquet or .txt files into "
            "$EIGENTIME_DATA/openwebtext, or measure on the model's own samples."
        ) from None


def _files(folder: Path) -> tuple[str, list[str]]:
    """The files of one kind in a folder."""
    for suffix, kind in KINDS.items():
        files = sorted(map(str, folder.glob(f"*{suffix}")))
        if files:
            return kind, files
    raise EigentimeError(f"{folder} holds no .jsonl, .parquet or .txt files.")
