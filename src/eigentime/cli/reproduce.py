"""`eigentime reproduce`: the paper's experiments from the bundled networks."""

import time
from pathlib import Path
from typing import Annotated

import typer

from eigentime import api
from eigentime.cli.options import Seed, console, read_list, read_numbers
from eigentime.errors import EigentimeError
from eigentime.experiments.binomial import Binomial
from eigentime.experiments.countdown import STEPS, Countdown
from eigentime.experiments.dynamics import Dynamics
from eigentime.experiments.images import Images
from eigentime.experiments.lists import Lists
from eigentime.experiments.music import Music
from eigentime.report.rows import line_of
from eigentime.report.tables import comparison_tables
from eigentime.report.terminal import Fitted
from eigentime.tasks import TASKS

reproduce = typer.Typer(help="Run one of the paper's experiments from the bundled networks.", no_args_is_help=True)
Out = Annotated[Path | None, typer.Option(help="Folder for results and figure (default: results/EXPERIMENT).")]


@reproduce.command()
def binomial(
    out: Out = None,
    times: Annotated[int, typer.Option(help="Times to measure at.")] = 64,
    samples: Annotated[int, typer.Option(help="Forward paths, each seen at all times.")] = 16_384,
    seed: Seed = 0,
) -> None:
    """Entropy and Wasserstein dynamics of the binomial, exact and estimated.

    Example: eigentime reproduce binomial
    """
    folder = out or Path("results/binomial")
    content = Binomial(times=times, samples=samples, seed=seed).run(folder, progress=True)
    for kernel, result in content["kernels"].items():
        produced = result["entropy_produced"]
        estimate = produced["estimate"]
        console.print(
            f"{kernel}: entropy produced {produced['truth']:.4f} nats, estimated {estimate['mean']:.4f} ± "
            f"{estimate['stderr']:.4f} ({produced['relative_error']:+.1%})."
        )
    console.print(content["note"])
    console.print(f"Saved binomial.json and binomial.png in {folder}/.")


@reproduce.command()
def countdown(
    out: Out = None,
    model: Annotated[str, typer.Option(help="A bundled countdown network.")] = "countdown",
    samples: Annotated[int, typer.Option(help="Sequences a cell; half as many from 64 steps on.")] = 256,
    jys_samples: Annotated[
        int, typer.Option(help="Sequences that JYS looks at (its paper: 1024).")
    ] = api.JYS_SEQUENCES,
    seed: Seed = 0,
) -> None:
    """Every schedule on a countdown network and on the exact model. Interrupt it; the same command goes on.

    Example: eigentime reproduce countdown --samples 512
    """
    folder, began = out or Path("results/countdown"), time.perf_counter()
    experiment = Countdown(model=model, samples=samples, jys_samples=jys_samples, seed=seed)
    content = experiment.run(folder, progress=True)
    task = TASKS["countdown"]
    for part in ("exact", "network"):
        console.print(f"[bold]{content['exact_model'] if part == 'exact' else model}[/]")
        rows = [row for row in content[part]["rows"] if row["steps"] in STEPS]
        console.print(*comparison_tables(rows, task.fidelity, task.diversity))
    for part, found in content["speedup"].items():
        for line in found:
            if line["steps"] == 8 and line["strategy"] in ("wds", "ods"):
                equal = line["uniform_steps"]
                console.print(
                    f"{part}: {line['strategy']} with 8 evaluations violates as little as uniform steps with "
                    f"{equal['mean']:.1f} ± {equal['stderr']:.1f}."
                )
    console.print(f"Saved {model}.json and {model}.png in {folder}/ after {time.perf_counter() - began:.0f} s.")


@reproduce.command()
def lists(
    out: Out = None,
    model: Annotated[str, typer.Option(help="A bundled network of lists.")] = "lists",
    samples: Annotated[
        int, typer.Option(help="Answers per cell of the exact model; a quarter for the network.")
    ] = 1024,
    seed: Seed = 0,
) -> None:
    """List operations: samplers against the best that any can do. Interrupt it; the same command goes on.

    Example: eigentime reproduce lists --samples 256
    """
    folder, began = out or Path("results/lists"), time.perf_counter()
    content = Lists(model=model, samples=samples, seed=seed).run(folder, progress=True)
    for part in ("exact", "network"):
        for name, best in content["best"].items():
            rows = {(line_of(row), row["steps"]): row for row in content[part][name]["rows"] if row["steps"]}
            counts = sorted({count for _, count in rows})
            table = Fitted(f"{name}, {part}: right in %", *map(str, counts))
            for line in dict.fromkeys(line for line, _ in rows):
                accuracy = [rows[line, k]["metrics"]["accuracy"]["mean"] if (line, k) in rows else None for k in counts]
                table.add_row(line, *("" if value is None else f"{100 * value:.1f}" for value in accuracy))
            table.add_row("best possible", *(f"{100 * best[str(k)]:.1f}" for k in counts))
            console.print(table)
        found = content["bound"][part]
        console.print(
            f"{part}: accuracy is at least exp(-nats) in {found['holds']:.0%} of {found['cells']} cells; rank "
            f"correlation {found['rank_correlation']:.2f}."
        )
    console.print(f"Saved lists.json and lists.png in {folder}/ after {time.perf_counter() - began:.0f} s.")


@reproduce.command()
def music(
    out: Out = None,
    model: Annotated[str, typer.Option(help="The bundled network, or a published piano checkpoint.")] = "music",
    songs: Annotated[int, typer.Option(help="Held-out songs, one continuation each per cell.")] = 100,
    folder: Annotated[
        Path | None, typer.Option(help="train.npy and test.npy (tauLDR's Lakh files) instead of folk tunes.")
    ] = None,
    samplers: Annotated[str, typer.Option(help="Comma-separated.")] = "euler,tau-leaping",
    steps: Annotated[str, typer.Option(help="Comma-separated powers of two.")] = "2,4,8,16,32,64",
    reference_steps: Annotated[int, typer.Option(help="Uniform steps of the reference samples.")] = 512,
    budget: Annotated[int, typer.Option(help="Network evaluations for the clock.")] = Music.budget,
    jys_samples: Annotated[int, typer.Option(help="Songs that JYS looks at.")] = api.JYS_SEQUENCES,
    seed: Seed = 0,
) -> None:
    """Continue held-out tunes with every schedule. Interrupt it; the same command goes on.

    Example: eigentime reproduce music --songs 50
    """
    place, began = out or Path("results/music"), time.perf_counter()
    experiment = Music(
        model=model,
        songs=songs,
        folder=folder,
        samplers=read_list(samplers, "samplers"),
        steps=read_numbers(steps, "steps"),
        reference_steps=reference_steps,
        budget=budget,
        jys_samples=jys_samples,
        seed=seed,
    )
    content = experiment.run(place, progress=True)
    for sampler, rows in content["rows"].items():
        console.print(f"[bold]{sampler}[/]")
        console.print(*comparison_tables(rows, "hellinger", "outlier"))
    reference = content["reference"]["metrics"]
    console.print(
        f"{reference_steps} uniform steps: Hellinger {reference['hellinger']['mean']:.3f}, outlier "
        f"{reference['outlier']['mean']:.3f}. Saved music.json, music.png, rolls.png and midi/ in {place}/ after "
        f"{time.perf_counter() - began:.0f} s."
    )


@reproduce.command()
def dynamics(
    out: Out = None,
    models: Annotated[str, typer.Option(help="Bundled networks, comma-separated.")] = ",".join(Dynamics.models),
    budget: Annotated[int, typer.Option(help="Network evaluations for each.")] = Dynamics.budget,
    seed: Seed = 0,
) -> None:
    """Entropy production and transport along the reverse process, one column per modality.

    Example: eigentime reproduce dynamics --models countdown,music
    """
    place = out or Path("results/dynamics")
    Dynamics(models=read_list(models, "models"), budget=budget, seed=seed).run(place, progress=True)
    console.print(f"Saved dynamics.json and dynamics.png in {place}/.")


@reproduce.command()
def images(
    out: Out = None,
    model: Annotated[str, typer.Option(help="A bundled network for images: images or digits.")] = "images",
    count: Annotated[int, typer.Option("--images", help="Images a cell.")] = 256,
    steps: Annotated[str, typer.Option(help="Comma-separated.")] = "16,32,64,128",
    strategies: Annotated[str, typer.Option(help="Comma-separated.")] = ",".join(Images.strategies),
    fid: Annotated[
        str | None, typer.Option(help="Cells to judge by Inception's FID as well, such as uniform:64,ods:64.")
    ] = None,
    fid_images: Annotated[int, typer.Option(help="Samples for each of them.")] = 2000,
    budget: Annotated[
        int, typer.Option(help="Network evaluations for the clock, and again for every order.")
    ] = Images.budget,
    quick: Annotated[bool, typer.Option("--quick", help="64 images per cell, 16 to 64 evaluations.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The paper's 16 … 512 evaluations, 50,000 images, FID.")] = False,
    seed: Seed = 0,
) -> None:
    """Sample images with every schedule. Interrupt it; the same command goes on.

    Example: eigentime reproduce images --quick
    """
    names, counts = read_list(strategies, "strategies"), read_numbers(steps, "steps")
    cells = [_cell(text) for text in read_list(fid, "fid")] if fid else []
    if quick and full:
        raise EigentimeError("Choose one of --quick and --full.")
    if quick:
        count, counts = 64, [16, 32, 64]
    if full:
        count, counts, fid_images = 50_000, [16, 32, 64, 128, 256, 512], 50_000
        cells = [(name, number) for name in names for number in counts]
    place, began = out or Path("results") / model, time.perf_counter()
    experiment = Images(
        model=model,
        images=count,
        steps=counts,
        strategies=names,
        fid=cells,
        fid_images=fid_images,
        budget=budget,
        seed=seed,
    )
    content = experiment.run(place, progress=True)
    task = TASKS[model]
    console.print(f"Judge: {content['judge']}; {count} real images score {content['real'][task.fidelity]['mean']:.3f}.")
    console.print(*comparison_tables(content["rows"], task.fidelity, task.diversity))
    for row in content["fid"]:
        value = row["fid"]
        console.print(
            f"FID of {row['strategy']}, {row['steps']} steps: {value['mean']:.1f} ± {value['stderr']:.1f} "
            f"({row['samples']:,} images against {row['real']:,} real ones)"
        )
    console.print(
        f"Saved {model}.json, {model}.png and samples.png in {place}/ after {time.perf_counter() - began:.0f} s."
    )


def _cell(text: str) -> tuple[str, int]:
    name, _, number = text.partition(":")
    if not number.isdigit():
        raise EigentimeError(f"--fid takes cells such as uniform:64, not {text!r}.")
    return name, int(number)
