"""What the checks with real trainers share: the contract of the Python package, and a tiny model. Import it first: it also keeps off GPU and hub."""

from __future__ import annotations

import os
import sys
import unittest
import warnings
from pathlib import Path
from typing import Any, Callable

OFFLINE = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "RAY_USAGE_STATS_ENABLED": "0", "TOKENIZERS_PARALLELISM": "false"}
os.environ.update({**OFFLINE, "TRL_EXPERIMENTAL_SILENCE": "1", "OMP_NUM_THREADS": "1", "WANDB_MODE": "disabled"})
warnings.filterwarnings("ignore")
HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[2] / "producer" / "python"
TOKENIZER = HERE.parents[1] / "fixtures" / "tokenizer" / "tokenizer.json"
sys.path[:0] = [str(PACKAGE), str(PACKAGE / "tests")]

import contract  # noqa: E402
import test_trainers  # noqa: E402


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
    """Checks the contract, and raises SystemExit if it is broken."""

    def check(test: unittest.TestCase) -> None:
        contract.check(test, drive, **options)

    finish(name, check)


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


__all__ = ["contract", "finish", "make_model", "run", "test_trainers"]
