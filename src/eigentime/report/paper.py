"""One page with every figure and claim of the paper beside ours: plain HTML with the pictures inside."""

import base64
from html import escape
from pathlib import Path

from eigentime.report.claims import CLAIMS, Claim

FIGURES = {
    "binomial": ("Entropy and transport of the binomial, uniform and absorbing kernel", ["binomial/binomial.png"]),
    "countdown": ("Rule violation of count data against evaluations", ["countdown/countdown.png"]),
    "music": ("Outlier score and Hellinger distance of music", ["music/music.png", "music/rolls.png"]),
    "images": ("FID on CIFAR-10, and samples by schedule", ["images/images.png", "images/samples.png"]),
    "text": ("Generative perplexity of SEDD and MDLM", ["text/text.png", "text/text-sedd.png"]),
    "dynamics": ("The dynamics on real data (appendix)", ["dynamics/dynamics.png"]),
}
"""What the paper shows, and which files of ours show the same."""
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1b1f}"
    "img{max-width:100%}table{border-collapse:collapse;font-size:.85rem;display:block;overflow-x:auto}"
    "td,th{border-bottom:1px solid #ccc;padding:.4rem .6rem;text-align:left;vertical-align:top}.wait{color:#777}"
)


def paper_page(folder: Path) -> str:
    """The page of what a folder of results holds; what is not made yet is named."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>The paper beside ours</title><style>{STYLE}</style>",
        "<h1>Improved Sampling Schedules for Discrete Diffusion Models, beside ours</h1>",
        "<p>Numbers after “at” are evaluations; better and worse mean beyond a 95 % interval of the difference.</p>",
    ]
    for name, (title, pictures) in FIGURES.items():
        parts.append(f"<h2>{escape(title)}</h2>")
        if not is_made(folder, name):
            parts.append(f"<p class=wait>Not made yet: eigentime reproduce {name}</p>")
            continue
        parts.append(_table(CLAIMS[name](folder)) if name in CLAIMS else "")
        parts += [_picture(folder / picture) for picture in pictures if (folder / picture).is_file()]
    return "\n".join(parts) + "\n"


def is_made(folder: Path, name: str) -> bool:
    """Whether an experiment has been run to its end: its results are written last but for figures."""
    files = ["text/text.json", "text/text-sedd.json"] if name == "text" else [f"{name}/{name}.json"]
    return all((folder / file).is_file() for file in files)


def _table(claims: list[Claim]) -> str:
    head = "".join(f"<th>{word}</th>" for word in ("the paper’s claim", "its number", "ours", "verdict", "why"))
    rows = ("".join(f"<td>{escape(part)}</td>" for part in claim) for claim in claims)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _picture(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<p><img alt="{escape(path.stem)}, ours" src="data:image/png;base64,{data}"></p>'
