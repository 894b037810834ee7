"""
The server of the policy: the model in this process behind the client's PolicyShim, or a real vLLM. Both get new weights before each step.
"""

import copy
import json
import threading
import urllib.request

import torch
from swefarm import PolicyShim

import loop
import tiny


class InProcess:
    """Samples from a copy of the model, one answer at a time."""

    def __init__(self, model, tokenizer):
        self.model, self.tokenizer = copy.deepcopy(model).eval(), tokenizer
        self._lock = threading.Lock()
        self._shim = PolicyShim(self._sample, tokenizer, model=loop.MODEL, max_model_len=tiny.CONTEXT)
        self.url = self._shim.url

    def refit(self, model, version):
        """Replaces the weights between two answers."""
        with self._shim.update(version):
            self.model.load_state_dict(model.state_dict())

    @torch.no_grad()
    def _sample(self, ids, params):
        """Samples at temperature 1 from all tokens, as the run's settings (loop.SAMPLING) require."""
        tokens, scores = [], []
        with self._lock:
            given, cache = ids, None
            while len(tokens) < params["max_tokens"]:
                out = self.model(input_ids=torch.tensor([given]), past_key_values=cache, use_cache=True)
                distribution = out.logits[0, -1].float().log_softmax(-1)
                token = int(torch.multinomial(distribution.exp(), 1))
                tokens.append(token)
                scores.append(float(distribution[token]))
                if token == self.tokenizer.eos_token_id:
                    return {"token_ids": tokens, "log_probs": scores, "finish_reason": "stop"}
                given, cache = [token], out.past_key_values
        return {"token_ids": tokens, "log_probs": scores, "finish_reason": "length"}


class Vllm:
    """
    A vLLM that serves the folder's model, started with VLLM_SERVER_DEV_MODE=1. The trainer writes the weights to the folder, and the
    server reads them from there, because this needs no GPU. With GPUs, use vLLM's weight transfer over NCCL.
    """

    def __init__(self, url, folder):
        self.url, self.folder = url.rstrip("/"), folder

    def refit(self, model, version):
        """Replaces the weights. vLLM pauses running answers meanwhile; this loop has none."""
        model.save_pretrained(self.folder)
        self._post("/pause?mode=keep")
        try:
            self._post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": self.folder}})
            self._post("/reset_prefix_cache")
            self._post("/update_weight_version", {"new_version": version})
        finally:
            self._post("/resume")

    def _post(self, path, body=None):
        data = json.dumps(body or {}).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url.removesuffix("/v1") + path, method="POST", data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            answer.read()
