"""The law of stories: choose its tokens, then say what is cut and what its entropy is.

python benchmarks/stories_law.py --choose    the most frequent tokens of the storyteller's own stories (five minutes)
python benchmarks/stories_law.py             entropy from the training part (`eigentime draw stories`), mass that is
                                             cut, likelihoods of fresh data; writes results/stories/law.json
"""

import argparse
import hashlib
import json
from typing import Any

import numpy as np
import torch
from provenance import save

from eigentime.data.storyteller import STORY, storyteller
from eigentime.files import write_atomically
from eigentime.process.randomness import Purpose, uniforms
from eigentime.tasks.metrics import over_sequences, sequence_entropy
from eigentime.tasks.stories import TASK
from eigentime.tasks.story_law import BATCH, KEPT, LENGTH, Stories, StoryLaw
from eigentime.tasks.task import TRAINING_SEED

SIZE, PILOT, PILOT_SEED = 2048, 2048, 2**42
FRESH, FRESH_SEED = 1024, 2**43
VARIETY = 16384
"""Sequences whose own token frequencies are looked at."""


def pilot() -> torch.Tensor:
    """Sequences of the unrestricted law."""
    law = StoryLaw(storyteller(), np.arange(len(storyteller().pieces)))
    numbers = uniforms(PILOT_SEED, Purpose.DATA, PILOT, LENGTH)
    return torch.cat([law.draw(part).tokens for part in numbers.split(64)])


def choose() -> None:
    """Write the tokens that are kept, the most frequent first, with how they are written."""
    told = storyteller()
    counts = np.bincount(pilot().flatten().numpy(), minlength=len(told.pieces))
    tokens = np.lexsort((np.arange(len(counts)), -counts))[:SIZE]
    pieces = ["\n\n" if token == STORY else told.pieces[token] for token in tokens]
    content: dict[str, Any] = {
        "about": "The most frequent tokens of stories15M at temperature 1, and how they are written.",
        "tokens": tokens.tolist(),
        "pieces": pieces,
        "digest": hashlib.sha256(tokens.tobytes()).hexdigest()[:16],
        "pilot": {
            "sequences": PILOT,
            "seed": PILOT_SEED,
            "different_tokens": int((counts > 0).sum()),
            "share_of_tokens_kept": float(counts[tokens].sum() / counts.sum()),
        },
    }
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(KEPT, json.dumps(content, indent=0) + "\n")
    print(content["pilot"])


def cut_mass(law: Stories, x: torch.Tensor) -> torch.Tensor:
    """For each sequence the mass that the storyteller gives to tokens which are not kept, mean over its tokens."""
    everything, kept = torch.from_numpy(storyteller().embedding), law.law.embedding
    shares = []
    for part in x.split(16):
        features = law.law.features(part).double()
        log_kept = (features @ kept.double().T).logsumexp(-1)
        log_all = (features @ everything.double().T).logsumexp(-1)
        shares.append((-torch.expm1(log_kept - log_all)).mean(1))
    return torch.cat(shares)


def evaluate() -> None:
    """Everything about the law that can be known."""
    law = Stories()
    count = TASK.training_sequences
    drawn = law.drawn(count, TRAINING_SEED)
    entropy, surprise = over_sequences(drawn.entropy), over_sequences(-drawn.log_likelihood)
    fresh = law.drawn(FRESH, FRESH_SEED)
    again = law.log_likelihood(fresh.tokens)
    cut = over_sequences(cut_mass(law, fresh.tokens[:BATCH]))
    kept = json.loads(KEPT.read_text())
    kept["entropy"] = {"mean": entropy.mean, "stderr": entropy.stderr, "sequences": count}
    kept["token_entropy"] = vars(over_sequences(sequence_entropy(drawn.tokens[:VARIETY])))
    write_atomically(KEPT, json.dumps(kept, indent=0) + "\n")
    result = {
        "tokens": {"kept": law.size, "of": len(storyteller().pieces), "length": LENGTH, "pilot": kept["pilot"]},
        "mass_cut_per_token": vars(cut),
        "entropy": {**vars(entropy), "sequences": count},
        "entropy_per_token": {"mean": entropy.mean / LENGTH, "stderr": entropy.stderr / LENGTH},
        "surprise_of_the_same": vars(surprise),
        "excess_of_fresh_data": vars(over_sequences(-again - entropy.mean)),
        "cached_and_one_pass_differ_at_most": (again - fresh.log_likelihood).abs().max().item(),
    }
    save("stories/law.json", result, seed=0, training=count, fresh=FRESH, cut=BATCH)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--choose", action="store_true")
    choose() if parser.parse_args().choose else evaluate()
