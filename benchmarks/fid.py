"""Is the FID right? Between disjoint real sets it must be linear in 1/n and vanish in the end; noise must raise it.

python benchmarks/fid.py [--images 10000]    writes results/fid.json; Inception's features of real images are cached
"""

import argparse

import numpy as np
import torch
from provenance import save

from eigentime.report.progress import progress_bar
from eigentime.tasks.features import frechet, inception_features, real_inception, small_features
from eigentime.tasks.images import test

SEED, LADDER, LADDER_IMAGES = 0, (0, 8, 16, 32, 64), 100


def between_real_sets(features: np.ndarray, repeats: int = 4) -> dict[str, object]:
    """Distances of disjoint halves of random subsets, and the line through them over 1/n.

    Sets must hold more images than there are features (2048), or covariances lose rank and the line bends.
    """
    rng = np.random.default_rng(SEED)
    most = len(features) // 2
    sizes = [round(most / factor) for factor in (1, 1.25, 1.5, 1.75, 2)]
    points = []
    for n in sizes:
        found = []
        for _ in range(repeats):
            chosen = rng.permutation(len(features))[: 2 * n]
            found.append(frechet(features[chosen[:n]], features[chosen[n:]]))
        points.append({"n": n, "mean": float(np.mean(found)), "stderr": float(np.std(found) / repeats**0.5)})
    slope, intercept = np.polyfit([1 / p["n"] for p in points], [p["mean"] for p in points], 1)
    fit = [slope / p["n"] + intercept for p in points]
    worst = max(abs(f - p["mean"]) / p["mean"] for f, p in zip(fit, points, strict=True))
    return {"points": points, "intercept": float(intercept), "slope": float(slope), "largest_misfit": float(worst)}


def ladder(real: np.ndarray, extract) -> list[dict[str, float]]:  # type: ignore[no-untyped-def]
    """The distance of images with more and more noise."""
    images = test()[-LADDER_IMAGES:].float()
    rng = torch.Generator().manual_seed(SEED)
    noise = torch.randn(images.shape, generator=rng)
    levels = []
    for level in LADDER:
        noisy = (images + level * noise).round().clamp(0, 255).long()
        levels.append({"noise": level, "distance": frechet(extract(noisy), real)})
    return levels


def main(images: int) -> None:
    """Both checks for Inception and for the small classifier."""
    with progress_bar("Inception on real images") as advance:
        inception = real_inception(images, advance)
    small = small_features(test()[:images])
    content = {}
    for name, features, extract in (
        ("small classifier", small, small_features),
        ("Inception", inception, inception_features),
    ):
        content[name] = {"real": between_real_sets(features), "ladder": ladder(features, extract)}
        print(name, content[name])
    save("fid.json", {"judges": content}, images=images, ladder_images=LADDER_IMAGES, seed=SEED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=10_000)
    main(parser.parse_args().images)
