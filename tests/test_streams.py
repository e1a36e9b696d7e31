"""Data that come batch by batch, and are never there at once."""

from itertools import count

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.data.streams import Reading, taken
from eigentime.training import train
from test_keeping import DATA, network
from test_training import tiny, tiny_data, weights_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Endless:
    """More sequences than anyone holds, in batches of five; it counts how many were asked for."""

    def __init__(self, rows=DATA):
        self.rows, self.given = rows, 0

    def __iter__(self):
        for first in count(0, 5):
            self.given += 5
            yield self.rows[np.arange(first, first + 5) % len(self.rows)]


def as_columns(rows):
    return ({"input_ids": row.tolist(), "source": "somewhere"} for row in rows)


@pytest.mark.parametrize("stream", [Endless, as_columns, lambda rows: map(torch.from_numpy, rows)])
def test_a_stream_is_measured_as_the_array_it_begins_with(stream):
    data, model = stream(DATA), network()
    found, whole = et.measure(model, data, budget=256), et.measure(model, DATA, budget=256)
    assert found.fingerprint == whole.fingerprint
    if isinstance(data, Endless):
        assert data.given <= 70


def test_other_verbs_take_as_much_as_they_need():
    model = network()
    grid = et.schedule("uniform", steps=3, model=model)
    data = Endless()
    of_stream, of_array = (et.nll(model, x, "ancestral", grid, sequences=20) for x in (data, DATA[:20]))
    np.testing.assert_array_equal(of_stream.nats.values, of_array.nats.values)
    assert data.given == 20
    et.recommend(model, data, nfe=3, sequences=16, budget=32)
    assert data.given <= 40


def test_a_streamed_library_dataset():
    datasets = pytest.importorskip("datasets")
    stream = datasets.IterableDataset.from_generator(lambda: ({"tokens": row.tolist()} for row in DATA))
    np.testing.assert_array_equal(taken(stream, 10), DATA[:10])
    np.testing.assert_array_equal(taken(stream.batch(4), 10), DATA[:10])


def test_training_reads_on_and_goes_on_where_it_was(tmp_path, monkeypatch):
    """Stopped and gone on with, the weights are those of one run; the stream begins again where it ends."""
    rows = tiny_data().numpy()[:18]
    train(tiny(steps=12), list_of_batches(rows), tiny_data(), tmp_path / "whole")
    recipe = tiny(steps=12)

    def stop(step, total, latest):
        if step == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr("eigentime.training.loop.SAVE_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, list_of_batches(rows), tiny_data(), tmp_path / "parts", advance=stop)
    train(recipe, list_of_batches(rows), tiny_data(), tmp_path / "parts")
    whole, parts = weights_of(tmp_path / "whole"), weights_of(tmp_path / "parts")
    for name in whole:
        assert torch.equal(parts[name], whole[name]), name
    np.testing.assert_array_equal(Reading(list_of_batches(rows)).rows(16, 4), rows[[16, 17, 0, 1]])


def list_of_batches(rows):
    class Batches:
        def __iter__(self):
            return iter(np.split(rows, 6))

    return Batches()


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (iter([]), "no sequence"),
        (iter([[0, 1], [0, 1, 2]]), "one length"),
        (iter([[0.5]]), "whole numbers"),
        (iter([{"a": [1], "b": [2]}]), "none is called input_ids"),
        ({3, 4}, "whole numbers"),
    ],
)
def test_streams_that_cannot_be(stream, words):
    with pytest.raises(et.EigentimeError, match=words):
        et.measure(network(), stream)
