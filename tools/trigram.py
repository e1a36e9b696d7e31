"""Count the character trigrams of the training text: the exact model of text that comes with the package.

python tools/trigram.py    seconds, once the text is there; writes the counts into the package
"""

import numpy as np
from safetensors.numpy import save

from eigentime.data.text import characters, part_of
from eigentime.files import write_atomically
from eigentime.report.provenance import save_results
from eigentime.tasks.trigram import COUNTS, LENGTH, chain, count


def main() -> None:
    """All of the training part; the test part says how well the chain predicts text."""
    COUNTS.parent.mkdir(parents=True, exist_ok=True)
    training, test = (np.asarray(part_of(characters(), part)) for part in ("training", "test"))
    write_atomically(COUNTS, save({"counts": count(training).astype(np.uint32)}))
    pairs, rows = chain().initial.numpy(), chain().transition.numpy()
    seen = count(test).reshape(rows.shape)
    about = {
        "training_characters": len(training),
        "test_characters": len(test),
        "entropy_rate_bits": float((pairs[:, None] * -np.log2(rows) * rows).sum()),
        "test_bits": float((seen * -np.log2(rows)).sum() / seen.sum()),
        "entropy_bits_a_character": chain().entropy / LENGTH / np.log(2),
    }
    save_results(COUNTS.parent / "evaluation.json", about)
    print(f"entropy rate {about['entropy_rate_bits']:.3f} bits, {about['test_bits']:.3f} on the test text")


if __name__ == "__main__":
    main()
