import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.tasks import TASKS, countdown
from eigentime.tasks.metrics import hellinger, histogram, of_the_whole, over_sequences


def test_countdown_violations_equal_the_reference_count(fixture):
    arrays, _ = fixture("jys_metrics")
    x = torch.from_numpy(arrays["in_count_x"])
    flags = countdown.violations_jys(x)
    np.testing.assert_array_equal(~flags, arrays["out_count_flags"])
    np.testing.assert_allclose(flags.double().mean(1), arrays["out_count_error_per_sequence"], atol=1e-12)


def test_music_metrics_building_blocks_equal_the_reference(fixture):
    arrays, config = fixture("jys_metrics")
    fixed, size = config["fix_length"], config["piano_num_vocabs"]
    made, true = (torch.from_numpy(arrays[f"in_piano_{name}"])[:, fixed:] for name in ("gen", "true"))
    values = [hellinger(histogram(a, size), histogram(b, size)) for a, b in zip(made, true, strict=True)]
    np.testing.assert_allclose(values, arrays["out_hellinger_per_song"], atol=1e-6)


def test_countdown_data_has_no_violations_and_the_right_frequencies():
    x = et.load("countdown-exact").draw(2000, 1)
    metrics = countdown.metrics(x)
    assert metrics["violation"].mean == 0 == metrics["violation_jys"].mean
    assert metrics["unigrams"].mean < 0.01
    assert metrics["run_starts"].mean < 0.02
    broken = x.clone()
    broken[:, 100] = (broken[:, 100] + 3) % 32
    assert countdown.metrics(broken)["violation"].mean > 1 / 255
    assert countdown.metrics(torch.zeros_like(x))["unigrams"].mean > 0.5  # collapse is seen


def test_estimates_have_honest_error_bars():
    generator = torch.Generator().manual_seed(0)
    means, errors, wholes, whole_errors = [], [], [], []
    for _ in range(300):
        x = torch.randint(0, 5, (64, 3), generator=generator)
        estimate = over_sequences(x.double().mean(1))
        means.append(estimate.mean)
        errors.append(estimate.stderr)
        whole = of_the_whole(x, lambda part: part.double().mean().item() ** 2)
        wholes.append(whole.mean)
        whole_errors.append(whole.stderr)
    assert 0.85 < np.mean(errors) / np.std(means) < 1.15
    assert 0.8 < np.mean(whole_errors) / np.std(wholes) < 1.2


def test_a_model_carries_its_task_and_not_its_name():
    assert et.load("countdown").task is TASKS["countdown"] and et.load("countdown-exact").task is TASKS["countdown"]
    process = et.Process(et.Absorbing(130), et.LogLinear())
    mine = et.wrap(torch.nn.Embedding(130, 130), process, length=256, time=None, name="music")
    assert mine.task is None
    with pytest.raises(et.EigentimeError, match="needs data"):
        et.measure(mine)
    assert et.sample(mine, et.schedule("uniform", steps=2, model=mine), 2).shape == (2, 256)  # no tune is given
