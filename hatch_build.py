"""What a build adds to the package: the commit it was made from, and the project's address once there is one."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PLACES = {"wheel": "gainful/commit.txt", "sdist": "src/gainful/commit.txt"}


def load_about(root: str) -> ModuleType:
    """The module gainful.about, without importing the package, whose dependencies a build does not have."""
    found = importlib.util.spec_from_file_location("gainful_about", Path(root) / "src" / "gainful" / "about.py")
    assert found is not None
    assert found.loader is not None
    about = importlib.util.module_from_spec(found)
    found.loader.exec_module(about)
    return about


class AddressHook(MetadataHookInterface):
    """Project links, left out while `gainful.about.REPOSITORY` is empty."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        address = load_about(self.root).REPOSITORY.rstrip("/")
        metadata["urls"] = {"Repository": address, "Issues": f"{address}/issues"} if address else {}


class CommitHook(BuildHookInterface):
    """The file commit.txt in wheels and source archives; an editable installation asks git instead."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects the files."""
        commit = load_about(self.root).commit()
        if version == "editable" or not commit or (Path(self.root) / "src" / "gainful" / "commit.txt").exists():
            return
        self.folder = tempfile.TemporaryDirectory()
        written = Path(self.folder.name) / "commit.txt"
        written.write_text(commit + "\n", "utf-8")
        build_data["force_include"][str(written)] = PLACES[self.target_name]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Called by hatchling after the build."""
        if hasattr(self, "folder"):
            self.folder.cleanup()
