"""Imports packages from their own folders alone: that which they lie in may be closed to the runner."""

from __future__ import annotations

import os
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Packages(MetaPathFinder):
    """Finds the packages in ``folders`` by their names; Python's own finder has to list the folder above."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = {os.path.basename(folder): folder for folder in folders}  # noqa: PTH119

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """Where ``fullname`` is, if it is one of the packages."""
        folder = self._folders.get(fullname)
        if folder is None:
            return None
        beginning = os.path.join(folder, "__init__.py")  # noqa: PTH118
        if os.path.exists(beginning):  # noqa: PTH110
            return spec_from_file_location(fullname, beginning, submodule_search_locations=[folder])
        namespace = ModuleSpec(fullname, None, is_package=True)
        namespace.submodule_search_locations = [folder]
        return namespace
