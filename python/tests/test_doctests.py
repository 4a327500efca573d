"""The examples of the package run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import provegym

MODULES = ["provegym", *(m.name for m in pkgutil.walk_packages(provegym.__path__, "provegym.") if "__main__" not in m.name)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as err:
        pytest.skip(f"{err.name} is not installed")
    assert doctest.testmod(module).failed == 0
