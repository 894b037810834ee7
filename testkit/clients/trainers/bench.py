"""
Provides the common parts of the checks with real trainers: the contract of the Python package, a tiny model, and stand-ins for packages
that a trainer imports and the checks never call. Import this module first, because it also disables the GPU and the model hub.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import types
import unittest
import warnings
from pathlib import Path
from typing import Any, Callable

OFFLINE = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "RAY_USAGE_STATS_ENABLED": "0", "TOKENIZERS_PARALLELISM": "false"}
os.environ.update({**OFFLINE, "TRL_EXPERIMENTAL_SILENCE": "1", "OMP_NUM_THREADS": "1", "WANDB_MODE": "disabled"})
warnings.filterwarnings("ignore")
HERE = Path(__file__).resolve().parent
RECIPES = HERE.parents[2] / "examples" / "train"
PACKAGE = HERE.parents[2] / "producer" / "python"
TOKENIZER = HERE.parents[1] / "fixtures" / "tokenizer" / "tokenizer.json"
sys.path[:0] = [str(PACKAGE), str(PACKAGE / "tests")]

import contract  # noqa: E402
import drives  # noqa: E402
import realfarm  # noqa: E402


class Anything(types.ModuleType):
    """A module that has every attribute. A capitalised name is a class. Any other name is a module that works as a function or decorator."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = type(name, (), {"__init__": _attributes}) if name[0].isupper() else Anything(f"{self.__name__}.{name}")
        setattr(self, name, found)
        return found

    def __call__(self, *given: Any, **_: Any) -> Any:
        return given[0] if given and callable(given[0]) else self


def _attributes(self: Any, *_: Any, **given: Any) -> None:
    self.__dict__.update(given)


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages: "tuple[str, ...]") -> None:
        self.packages = packages

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        absent = name.split(".")[0] in self.packages
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if absent else None

    def create_module(self, spec: Any) -> Anything:
        module = Anything(spec.name)
        module.__version__ = "0.30.0"
        return module

    def exec_module(self, module: Any) -> None:
        pass


def stand_in(*packages: str) -> None:
    """Makes these packages importable. An installed package of the same name is not used."""
    sys.meta_path.insert(0, StandIns(packages))


def make_model(folder: Path) -> tuple[Any, Any]:
    """Returns a model of some 60,000 random parameters and its tokenizer, after writing both to ``folder``."""
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(TOKENIZER), eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = (HERE.parent / "verl" / "chatml.jinja").read_text()
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), **sizes, **ends)).float()
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return model, tokenizer


def run(name: str, drive: "contract.Drive", **options: Any) -> None:
    """Checks the contract and, if realfarm.py runs this process, two steps on a real farm. Raises SystemExit if a check fails."""

    def check(test: unittest.TestCase) -> None:
        contract.check(test, drive, **options)

    finish(name, check)
    if realfarm.URL in os.environ:
        finish(f"{name}: two steps on a farm", lambda test: realfarm.check(test, drive, "trainer", options.get("std", True)))


def recipe(name: str, given: "dict[str, int]") -> None:
    """Checks that a configuration of examples/train, as its trainer read it, has the sizes that examples/train/README.md names."""
    expected = {"groups": 32, "samples": 16, "prompt": 8192, "response": 32_768}
    finish(f"{name}: its recipe", lambda test: test.assertEqual(given, expected))


def recipe_module(path: str) -> Any:
    """Returns a script of examples/train as a module."""
    spec = importlib.util.spec_from_file_location("recipe", RECIPES / path)
    module = sys.modules["recipe"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def recipe_words(script: str, *arguments: str) -> list[str]:
    """Returns the arguments that a shell script of examples/train gives to Python."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "python3")
        python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        python.chmod(0o755)
        env = {"PATH": f"{folder}:{os.environ['PATH']}", "HOST": "10.0.0.7"}
        printed = subprocess.run(["bash", str(RECIPES / script), *arguments], env=env, check=True, capture_output=True, text=True).stdout
    return printed.splitlines()


def finish(name: str, check: Callable[[unittest.TestCase], None]) -> None:
    """Runs one check with the assertions of unittest, and prints its name."""
    result = unittest.TestResult()
    case = type("Check", (unittest.TestCase,), {"runTest": check, "__str__": lambda self: name})()
    case.run(result)
    for _, text in result.failures + result.errors:
        print(text, flush=True)
    if not result.wasSuccessful():
        raise SystemExit(f"broken: {name}")
    print(f"ok {name}", flush=True)


__all__ = ["contract", "drives", "finish", "make_model", "recipe", "recipe_module", "recipe_words", "run", "stand_in"]
