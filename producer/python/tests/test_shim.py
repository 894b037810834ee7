import asyncio
import json
import threading
import unittest
import urllib.error
import urllib.request

from swefarm import BadRequest, PolicyShim


class Letters:
    """A tokenizer whose ids are code points."""

    def encode(self, text, add_special_tokens=False):
        return [ord(letter) for letter in text]

    def decode(self, ids, skip_special_tokens=False):
        return "".join(map(chr, ids))

    def apply_chat_template(self, messages, tools=None, tokenize=True, return_dict=False, add_generation_prompt=True, **more):
        text = "".join(f"<{message['content']}>" for message in messages)
        return self.encode(text + ("!" if add_generation_prompt else ""))


def asked(shim, path, body=None, headers=()):
    """Returns status, JSON and version."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(shim.url.removesuffix("/v1") + path, data, {"content-type": "application/json", **dict(headers)})
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, json.load(reply), reply.headers["x-policy-version"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error), None


class ShimTest(unittest.TestCase):
    def test_token_ids_pass_unchanged_in_both_directions(self):
        seen = []

        def generate(ids, params):
            seen.append((ids, params))
            return {"token_ids": [104, 105], "log_probs": [-0.5, -0.25], "finish_reason": "length"}

        with PolicyShim(generate, Letters(), model="m", version="step-1", max_model_len=10) as shim:
            self.assertEqual(asked(shim, "/v1/models")[1]["data"][0]["max_model_len"], 10)
            body = {"model": "m", "prompt": [1, 2, 3], "temperature": 0.5, "max_tokens": 99, "return_token_ids": True}
            status, answer, version = asked(shim, "/v1/completions", body, {"X-Session-ID": "r1"}.items())
            (choice,) = answer["choices"]
            self.assertEqual((status, version, choice["token_ids"], choice["prompt_token_ids"]), (200, "step-1", [104, 105], [1, 2, 3]))
            self.assertEqual((choice["logprobs"]["token_logprobs"], choice["text"], choice["finish_reason"]), ([-0.5, -0.25], "hi", "length"))
            self.assertEqual(seen, [([1, 2, 3], {"temperature": 0.5, "max_tokens": 7, "session_id": "r1"})])
            chat = asked(shim, "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]})[1]
            self.assertEqual((chat["prompt_token_ids"], chat["choices"][0]["message"]["content"]), ([60, 97, 62, 33], "hi"))
            self.assertEqual(asked(shim, "/tokenize", {"prompt": "ab"})[1]["tokens"], [97, 98])
            self.assertEqual(asked(shim, "/detokenize", {"tokens": [97]})[1]["prompt"], "a")

    def test_each_fault_has_its_own_status(self):
        def generate(ids, params):
            if ids == [1]:
                raise BadRequest("no such adapter")
            return {"token_ids": [1], "log_probs": [], "finish_reason": "stop"}

        with PolicyShim(generate, Letters(), max_model_len=4) as shim:
            for path, body, status, message in (
                ("/v1/completions", {"prompt": [1]}, 400, "no such adapter"),
                ("/v1/completions", {"prompt": "text"}, 400, "prompt: expected a list of token ids"),
                ("/v1/completions", {"prompt": [1, 2, 3, 4]}, 400, "maximum context length is 4 tokens"),
                ("/tokenize", {}, 400, "prompt: missing"),
                ("/v1/completions", {"prompt": [2]}, 500, "1 token ids and 0 log-prob"),
                ("/v1/embeddings", {}, 404, "no route /v1/embeddings"),
            ):
                got, answer, _ = asked(shim, path, body)
                self.assertEqual(got, status, path)
                self.assertIn(message, answer["error"]["message"])

    def test_an_update_waits_for_answers_and_delays_new_requests(self):
        begun, go, order = threading.Event(), threading.Event(), []

        def generate(ids, params):
            if ids == [1]:
                begun.set()
                go.wait(30)
            order.append(ids[0])
            return {"token_ids": [5], "log_probs": [-1.0], "finish_reason": "stop"}

        versions = {}
        with PolicyShim(generate, Letters(), version="old") as shim:

            def ask(token):
                versions[token] = asked(shim, "/v1/completions", {"prompt": [token]})[2]

            first = threading.Thread(target=ask, args=(1,))
            first.start()
            begun.wait(30)
            with self.assertRaises(TimeoutError), shim.update("never", end_s=0.01):
                self.fail("an answer was running")
            threading.Timer(0.05, go.set).start()
            with shim.update("new"):
                order.append("weights")
                second = threading.Thread(target=ask, args=(2,))
                second.start()
            first.join()
            second.join()
        self.assertEqual((order, versions), ([1, "weights", 2], {1: "old", 2: "new"}))

    def test_a_coroutine_samples_in_the_given_loop(self):
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()

        async def generate(ids, params):
            own = asyncio.get_running_loop() is loop
            return {"token_ids": [int(own)], "log_probs": [-1.0], "finish_reason": "stop", "version": 7}

        with PolicyShim(generate, Letters(), loop=loop) as shim:
            _, answer, version = asked(shim, "/v1/completions", {"prompt": [1]})
            self.assertEqual((answer["choices"][0]["token_ids"], version), ([1], "7"))
        loop.call_soon_threadsafe(loop.stop)


if __name__ == "__main__":
    unittest.main()
