"""What eigentime stands on here, as a software bill of materials: every package that it needs and that is installed,
with its version and licence, in CycloneDX 1.5.

python tools/sbom.py [FILE]      writes sbom.json
"""

import json
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from eigentime.files import write_atomically

EXTRAS = ("hub", "figures", "train", "music", "images", "text", "eval", "diffusers", "app", "chemistry", "notebook")


def needed(root: str = "eigentime") -> dict[str, Distribution]:
    """The package itself, with all extras that users install, and all that it needs, as far as it is here."""
    found: dict[str, Distribution] = {}
    waiting = [(root, frozenset(EXTRAS))]
    while waiting:
        name, extras = waiting.pop()
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # of an extra that is not installed
        known = canonicalize_name(name) in found
        found[canonicalize_name(name)] = package
        if known and not extras:
            continue
        for line in package.requires or ():
            asked = Requirement(line)
            wanted = any(asked.marker.evaluate({"extra": each}) for each in (extras or {""})) if asked.marker else True
            if wanted and canonicalize_name(asked.name) not in found:
                waiting.append((asked.name, frozenset(asked.extras)))
    return dict(sorted(found.items()))


def component(name: str, package: Distribution) -> dict[str, Any]:
    """A package as CycloneDX describes it."""
    licence = package.metadata.get("License-Expression") or package.metadata.get("License") or ""
    version = package.version
    described = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
    }
    return {**described, "licenses": [{"license": {"name": licence.splitlines()[0][:80]}}]} if licence else described


def bill() -> dict[str, Any]:
    """The whole document."""
    packages = needed()
    own = packages.pop("eigentime")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {**component("eigentime", own), "type": "application"}},
        "components": [component(name, package) for name, package in packages.items()],
    }


def main() -> None:
    """Write it."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "sbom.json")
    content = bill()
    write_atomically(path, json.dumps(content, indent=1) + "\n")
    print(f"wrote {path}: {len(content['components'])} packages")


if __name__ == "__main__":
    main()
