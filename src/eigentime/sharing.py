"""Clocks, schedules and plans travel with a model: `save_pretrained`, `from_pretrained` and `push_to_hub`."""

from abc import ABC, abstractmethod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

from eigentime.arguments import place
from eigentime.errors import EigentimeError
from eigentime.files import make_folder
from eigentime.reading import Unreadable, check_inside


class Shareable(ABC):
    """Something that saves itself to one file, under the same name wherever it is shared."""

    shared_as: ClassVar[str]

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write one file."""

    @classmethod
    @abstractmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""

    def save_pretrained(self, folder: str | Path, name: str | None = None) -> Path:
        """Write into a folder, such as that of the model it belongs to; `name` tells several apart."""
        path = Path(place(folder, "folder")) / _inside(name or self.shared_as)
        make_folder(path.parent)
        self.save(path)
        return path

    @classmethod
    def from_pretrained(cls, source: str | Path, name: str | None = None, revision: str | None = None) -> Self:
        """Read from a folder or from a repository of the hub."""
        file = _inside(name or cls.shared_as)
        if Path(source).is_dir():
            return cls.load(Path(source) / file)
        hub = _hub()
        try:
            return cls.load(hub.hf_hub_download(str(source), file, revision=revision))
        except EigentimeError:
            raise
        except Exception as error:
            detail = (str(error).splitlines() or [type(error).__name__])[0]
            raise EigentimeError(
                f"{file} of {source} is neither in a folder nor to be had from the hub ({detail})."
            ) from None

    def push_to_hub(self, repository: str, name: str | None = None, **options: Any) -> str:
        """Upload to a repository of the hub (made if need be), beside the model or in one of its own."""
        hub = _hub()
        with TemporaryDirectory() as folder:
            path = self.save_pretrained(folder, name)
            try:
                api = hub.HfApi()
                api.create_repo(repository, exist_ok=True)
                return str(api.upload_file(path_or_fileobj=path, path_in_repo=path.name, repo_id=repository, **options))
            except Exception as error:
                detail = (str(error).splitlines() or [type(error).__name__])[0]
                raise EigentimeError(
                    f"Uploading to {repository} failed ({detail}); log in with `hf auth login`."
                ) from None


def _inside(name: str) -> str:
    try:
        check_inside([name])
    except Unreadable as error:
        raise EigentimeError(f"A name that tells several apart is one within the folder; {error}.") from None
    return name


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise EigentimeError("The hub needs huggingface_hub: pip install 'eigentime[hub]'.") from None
    return huggingface_hub
