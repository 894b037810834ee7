"""
An OpenAI-compatible endpoint for a sampler in this process, for trainers whose engine has no address (a model of transformers, Ray
actors, a hosted sampler). The endpoint passes token ids unchanged in both directions.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Iterator, Mapping, Optional

#: Routes for POST.
_ROUTES = ("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize")
#: Keys of a request that the sampler does not receive.
_OURS = ("prompt", "messages", "tools", "model", "stream", "stream_options", "n", "return_token_ids", "chat_template_kwargs")


class BadRequest(Exception):
    """The request cannot be sampled, and the farm does not retry it. ``generate`` may raise this error."""


class PolicyShim:
    """
    Serves ``/v1/models``, ``/v1/completions`` (the prompt as ids), ``/v1/chat/completions``, ``/tokenize`` and ``/detokenize`` at ``url``
    until :meth:`close`, each request in a thread. ``generate(ids, params)`` returns a mapping with ``token_ids``, ``log_probs`` (of the
    distribution that was sampled from) and ``finish_reason``; its ``version``, if any, replaces the shim's. The function runs in several
    threads at once; a coroutine function runs in ``loop``. ``params`` are the keys of the request, always with ``max_tokens`` and
    ``session_id``. ``tokenizer`` needs ``apply_chat_template``, ``encode`` and ``decode``, as tokenizers of transformers have.
    """

    def __init__(
        self,
        generate: Callable[[list[int], dict[str, Any]], Any],
        tokenizer: Any,
        *,
        model: str = "policy",
        version: Optional[str] = None,
        host: str = "127.0.0.1",
        port: int = 0,
        max_model_len: int = 32768,
        loop: Optional[asyncio.AbstractEventLoop] = None,
    ) -> None:
        self.generate, self.tokenizer, self.loop = generate, tokenizer, loop
        self.model, self.version, self.max_model_len = model, version, max_model_len
        self._running = 0
        self._paused = False
        self._state = threading.Condition()
        self._server = _Server((host, port), _handler(self))
        self.url = f"http://{host}:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, name="swefarm-policy-shim", daemon=True).start()

    @contextmanager
    def update(self, version: Optional[str] = None, end_s: float = 600.0) -> Iterator[None]:
        """
        Waits until the running answers have ended, and blocks new requests. Then runs the block, which replaces the weights, and serves
        ``version``. Raises TimeoutError after ``end_s`` seconds, without running the block.
        """
        with self._state:
            self._paused = True
        try:
            with self._state:
                if not self._state.wait_for(lambda: self._running == 0, end_s):
                    raise TimeoutError(f"{self.url}: {self._running} answers did not end within {end_s:.0f} s")
            yield
            if version is not None:
                self.version = version
        finally:
            with self._state:
                self._paused = False
                self._state.notify_all()

    def close(self) -> None:
        """Stops the server. Incomplete answers are lost."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> "PolicyShim":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def answer(self, path: str, body: Mapping[str, Any], session: Optional[str]) -> "tuple[dict[str, Any], Optional[str]]":
        """Returns the answer to a request and the version of its weights. Raises BadRequest."""
        if path == "/tokenize":
            ids = self._ids_of(body)
            return {"count": len(ids), "max_model_len": self.max_model_len, "tokens": ids}, None
        if path == "/detokenize":
            return {"prompt": self.tokenizer.decode(_required(body, "tokens"))}, None
        chat = path.endswith("chat/completions")
        prompt = self._ids_of(body) if chat else body.get("prompt")
        if not isinstance(prompt, list) or not all(isinstance(token, int) for token in prompt):
            raise BadRequest("prompt: expected a list of token ids")
        room = self.max_model_len - len(prompt)
        if room < 1:
            raise BadRequest(f"This model's maximum context length is {self.max_model_len} tokens, but the prompt has {len(prompt)}")
        params = {key: value for key, value in body.items() if key not in _OURS}
        params["max_tokens"] = min(body.get("max_tokens") or body.get("max_completion_tokens") or room, room)
        if session is not None:
            params["session_id"] = session
        said, version = self._sample(prompt, params)
        return _completion(self, chat, prompt, said), version

    def _sample(self, prompt: list[int], params: dict[str, Any]) -> "tuple[Mapping[str, Any], Optional[str]]":
        with self._state:
            self._state.wait_for(lambda: not self._paused)
            self._running += 1
            version = self.version
        try:
            said = self.generate(prompt, params)
            if inspect.isawaitable(said):
                said = asyncio.run_coroutine_threadsafe(_awaited(said), self.loop).result() if self.loop else asyncio.run(_awaited(said))
            given = said.get("version")
            return said, str(given) if given is not None else version
        finally:
            with self._state:
                self._running -= 1
                self._state.notify_all()

    def _ids_of(self, body: Mapping[str, Any]) -> list[int]:
        if "messages" not in body:
            return list(self.tokenizer.encode(_required(body, "prompt"), add_special_tokens=body.get("add_special_tokens", False)))
        options = {"tokenize": True, "return_dict": False, **(body.get("chat_template_kwargs") or {})}
        options["add_generation_prompt"] = body.get("add_generation_prompt", True)
        if body.get("continue_final_message"):
            options["continue_final_message"] = True
        return list(self.tokenizer.apply_chat_template(body["messages"], tools=body.get("tools") or None, **options))


def _completion(shim: PolicyShim, chat: bool, prompt: list[int], said: Mapping[str, Any]) -> dict[str, Any]:
    ids = [int(token) for token in said["token_ids"]]
    log_probs = [float(value) for value in said["log_probs"]]
    if len(ids) != len(log_probs):
        raise ValueError(f"generate returned {len(ids)} token ids and {len(log_probs)} log-probabilities")
    names = [f"token_id:{token}" for token in ids]
    choice: dict[str, Any] = {"index": 0, "finish_reason": said.get("finish_reason", "stop"), "token_ids": ids}
    if chat:
        choice["message"] = {"role": "assistant", "content": shim.tokenizer.decode(ids, skip_special_tokens=True)}
        choice["logprobs"] = {"content": [{"token": name, "logprob": value, "top_logprobs": []} for name, value in zip(names, log_probs)]}
    else:
        # As in vLLM, the text excludes the token that stopped the answer.
        stopped = bool(ids) and choice["finish_reason"] == "stop" and ids[-1] == getattr(shim.tokenizer, "eos_token_id", None)
        choice["text"] = shim.tokenizer.decode(ids[:-1] if stopped else ids, skip_special_tokens=False)
        choice["logprobs"] = {"token_logprobs": log_probs, "tokens": names}
        choice["prompt_token_ids"] = prompt
    if said.get("routed_experts") is not None:
        choice["routed_experts"] = said["routed_experts"]
    return {
        "id": f"cmpl-{time.time_ns():x}",
        "object": "chat.completion" if chat else "text_completion",
        "created": int(time.time()),
        "model": shim.model,
        "choices": [choice],
        "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(ids), "total_tokens": len(prompt) + len(ids)},
        **({"prompt_token_ids": prompt} if chat else {}),
    }


async def _awaited(said: Any) -> Any:
    return await said


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


def _handler(shim: PolicyShim) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/v1/models":
                card = {"id": shim.model, "object": "model", "owned_by": "swefarm", "max_model_len": shim.max_model_len}
                return self._send(200, {"object": "list", "data": [card]}, shim.version)
            self._send(200 if self.path == "/health" else 404, {})

        def do_POST(self) -> None:
            version = None
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.path not in _ROUTES:
                return self._send(404, _error(f"no route {self.path}; there are {', '.join(_ROUTES)}"))
            try:
                body = json.loads(data or b"{}")
                session = self.headers.get("x-session-id") or self.headers.get("x-swefarm-rollout")
                answer, version = shim.answer(self.path, body, session)
                status = 200
            except (BadRequest, json.JSONDecodeError) as error:
                status, answer = 400, _error(str(error))
            except Exception as error:  # The farm retries the request, and its log shows the message.
                status, answer = 500, _error(f"{type(error).__name__}: {error}")
            self._send(status, answer, version)

        def _send(self, status: int, answer: Mapping[str, Any], version: Optional[str] = None) -> None:
            data = json.dumps(answer).encode()
            try:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                if version is not None:
                    self.send_header("x-policy-version", version)
                self.end_headers()
                self.wfile.write(data)
            except ConnectionError:  # The farm cancelled the rollout.
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _required(body: Mapping[str, Any], key: str) -> Any:
    if key not in body:
        raise BadRequest(f"{key}: missing")
    return body[key]


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message}}
