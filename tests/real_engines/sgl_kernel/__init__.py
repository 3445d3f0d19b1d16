"""Stands in for SGLang's compiled kernels, which have no build for a CPU without AMX.

Every name of it, submodules too, can be imported; a kernel that is called raises what torch raises for one that a build
does not have. With the flags of profiles/sglang-cpu.yaml nothing calls one for Llama and Qwen3.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any, NoReturn


class Kernel:
    """A kernel that is not there."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        _, _, name = self.__name__.rpartition(".")
        raise AttributeError(f"'_OpNamespace' 'sgl_kernel' object has no attribute '{name}'")

    def __getattr__(self, name: str) -> Kernel:
        return Kernel(f"{self.__name__}.{_public(name)}")


class KernelModule(types.ModuleType):
    """A module in which every name is such a kernel."""

    __path__: Sequence[str] = ()

    def __getattr__(self, name: str) -> Kernel:
        return Kernel(f"{self.__name__}.{_public(name)}")


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every submodule."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """A spec for whatever is below this package."""
        if not fullname.startswith(f"{__name__}."):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """An empty one: its names come to be when they are asked for."""
        return KernelModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is run."""


def _public(name: str) -> str:
    """`name`, unless Python itself asks whether a special attribute is there."""
    if name.startswith("__"):
        raise AttributeError(name)
    return name


def __getattr__(name: str) -> Kernel:
    return Kernel(f"{__name__}.{_public(name)}")


sys.meta_path.append(Finder())
