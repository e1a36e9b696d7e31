"""Reactions: their tokens, the half that is given, their judge, and an ALBERT through the path for any masked LM."""

import sys
from pathlib import Path

import pytest
import torch

import eigentime as et

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import reactions

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "C", "O", "Cl", ">>", ".", "(", ")", "=", "[O-]", "[Na+]"]
TRUE = ["CC(=O)Cl.CO>>CC(=O)OC", "CCCl.[Na+].[O-]C>>CCOC", "CBr>>CO"]


def test_only_reactions_of_known_tokens_and_the_right_length():
    x = reactions.encoded([*TRUE, TRUE[0]], WORDS, 21)
    assert ["".join(WORDS[token] for token in row[1:-1]) for row in x.tolist()] == TRUE[:1]
    assert x[0, 0] == 1 and x[0, -1] == 2
    assert reactions.encoded(TRUE, WORDS, 7).shape == (0, 7), "Br is no word"


def test_a_half_is_given():
    fixed = reactions.half_given(50, 11, 4, seed=0)
    assert ((~fixed).sum(1) == 4).all() and fixed[:, [0, -1]].all()
    assert (~fixed[:, 1:-1]).any(0).all() and not torch.equal(fixed, reactions.half_given(50, 11, 4, seed=1))


def test_the_judge_tells_sides_apart():
    pytest.importorskip("rdkit")
    true = reactions.encoded(TRUE[:1], WORDS, 21).repeat(4, 1)
    fixed = torch.zeros_like(true, dtype=torch.bool)
    x = true.clone()
    x[1, 3] = WORDS.index("C")  # a parenthesis that closes but never opens, before the arrow
    x[2, -2] = WORDS.index("(")  # one that never closes, behind it
    x[3, x[3] == WORDS.index(">>")] = WORDS.index("C")
    found = {name: value.mean for name, value in reactions.judged(true, fixed, WORDS)(x).items()}
    assert found["reactants"] == 0.5 and found["product"] == 0.5 and found["both"] == 0.25
    assert found["recovered"] == 0.25 and found["right"] == pytest.approx(1 - 3 / (4 * 21))


def test_an_albert_is_a_masked_model(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    shape = {"embedding_size": 8, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.AlbertConfig(vocab_size=len(WORDS), intermediate_size=32, max_position_embeddings=24, **shape)
    network = transformers.AlbertForMaskedLM(config).eval()
    network.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    model = et.load(str(tmp_path), length=21)
    x = reactions.encoded(TRUE[:1], WORDS, 21).repeat(8, 1)
    fixed = reactions.half_given(8, 21, 10, seed=0)
    shown = torch.where(fixed, x, 3)
    with torch.no_grad():
        logits = network(input_ids=shown).logits
    logits[..., 3] = -torch.inf
    assert torch.allclose(model(shown, torch.ones(8).double(), ~fixed), logits.log_softmax(-1)[~fixed], atol=1e-5)
    clock = et.measure(model, x, fixed=fixed, budget=32, orders=["low-discrepancy"])
    trial = reactions.Followed(model, clock, lambda x: {"mean": x.double().mean(1)}, given=x, fixed=fixed)
    rows = trial.rows([reactions.Cell(name, 1, 2) for name in ("uniform", "plan-random")])
    once = -logits.log_softmax(-1).gather(2, x[..., None])[..., 0].masked_fill(fixed, 0).sum(1)
    for row in rows:
        assert row["nats"] == pytest.approx(once.tolist(), rel=1e-4, abs=1e-3), "one evaluation: all posteriors at once"
        assert row["samples"] == 2 and len(row["nats"]) == 8, "more are taught than are sampled"
