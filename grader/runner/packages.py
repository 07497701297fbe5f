"""Imports packages directly from their folders, because their parent folder may be hidden from the runner."""

from __future__ import annotations

import os
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Packages(MetaPathFinder):
    """Finds the packages in ``folders`` by name; Python's own finder would have to list the parent folder."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = {os.path.basename(folder): folder for folder in folders}  # noqa: PTH119

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """The location of ``fullname`` if it is one of the packages, otherwise None."""
        folder = self._folders.get(fullname)
        if folder is None:
            return None
        init = os.path.join(folder, "__init__.py")  # noqa: PTH118
        if os.path.exists(init):  # noqa: PTH110
            return spec_from_file_location(fullname, init, submodule_search_locations=[folder])
        namespace = ModuleSpec(fullname, None, is_package=True)
        namespace.submodule_search_locations = [folder]
        return namespace
