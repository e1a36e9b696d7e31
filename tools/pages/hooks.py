"""What mkdocs does not do by itself: pages from README, registries and notebooks, and links that leave docs/.

A page of the repository reads well in two places. On a code host `docs/x.md` links to `../results/y.png`; on the site
that must lie beside it. Links to what the site does not hold (code, licence) become plain words.
"""

import re
import sys
from pathlib import Path
from posixpath import dirname, normpath, relpath
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from cards import pages as card_pages  # noqa: E402
from mkdocs.config.defaults import MkDocsConfig  # noqa: E402
from mkdocs.exceptions import PluginError  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402
from mkdocs.structure.pages import Page  # noqa: E402
from notebooks import page_of_notebook  # noqa: E402

ROOT = Path(__file__).parents[2]
ROOTED = {"index.md": "README.md", "changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
"""Pages that are files of the repository's root."""
PLACES = {source: page for page, source in ROOTED.items()}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
REMOTE = re.compile(r"<(?:script|img|iframe)[^>]+src=[\"']?https?:|<link[^>]+(?:stylesheet|font)[^>]+https?:", re.I)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out of the navigation what is not there."""
    config.nav = [entry for entry in (_existing(entry) for entry in config.nav or []) if entry]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and what pages show from results/."""
    made: dict[str, str | bytes] = {page: (ROOT / source).read_text() for page, source in ROOTED.items()}
    made |= card_pages()
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        made[f"notebooks/{notebook.stem}.md"] = page_of_notebook(notebook)
        files.remove(files.src_uris[f"notebooks/{notebook.name}"])
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    texts = [(name, text) for name, text in made.items() if isinstance(text, str)]
    texts += [(file.src_uri, file.content_string) for file in files if file.src_uri.endswith(".md")]
    for place in sorted({place for name, text in texts for place in _shown(name, text)}):
        files.append(File.generated(config, place, abs_src_path=str(ROOT / place)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at where things lie on the site."""
    here = page.file.src_uri

    def put(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        place = _place(here, path)
        if files.get_file_from_path(place) is None:
            return words if not picture and (ROOT / _repository(here, path)).exists() else match[0]
        return f"{picture}[{words}]({relpath(place, dirname(here) or '.')}{'#' + anchor if anchor else ''})"

    return _outside_code(markdown, lambda text: LINK.sub(put, text))


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that would load something from elsewhere."""
    for page in Path(config.site_dir).rglob("*.html"):
        found = REMOTE.search(page.read_text())
        if found:
            raise PluginError(f"{page.name} loads something from elsewhere: {found[0]}")


def _existing(entry: Any) -> Any:
    """An entry of the navigation without pages that neither docs/ holds nor a hook makes."""
    (title, target), *_ = entry.items()
    if isinstance(target, list):
        kept = [each for each in (_existing(each) for each in target) if each]
        return {title: kept} if kept else None
    made = target in ROOTED or target.startswith("cards/")
    notebook = ROOT / "docs" / Path(target).with_suffix(".ipynb")
    return entry if made or notebook.exists() or (ROOT / "docs" / target).exists() else None


def _repository(here: str, path: str) -> str:
    """Where a link of a page points in the repository."""
    base = "" if here in ROOTED else dirname(f"docs/{here}")
    return normpath(f"{base}/{path}".lstrip("/"))


def _place(here: str, path: str) -> str:
    """The same on the site."""
    found = _repository(here, path)
    return PLACES.get(found, re.sub(r"\.ipynb$", ".md", found.removeprefix("docs/")))


def _shown(here: str, text: str) -> list[str]:
    """Files under results/ that a page links to."""
    found = [_repository(here, target.split("#")[0]) for _, _, target in LINK.findall(text) if ":" not in target]
    return [path for path in found if path.startswith("results/") and (ROOT / path).is_file()]


def _outside_code(markdown: str, change: Any) -> str:
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.S | re.M)
    return "".join(part if part.startswith("```") else change(part) for part in parts)
