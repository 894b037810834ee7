"""
The loop without PyTorch: the policy is a table of probabilities of commands, by instance and turn. The program needs only the client.

    python table.py --dataset instances.jsonl --out curve.jsonl
"""

import copy
import math
import random

from swefarm import PolicyShim

import loop
import tasks

END = 0
#: Token 1 + n is the whole answer n. In other text each character is a token with an id from TEXT upwards.
ANSWERS = [tasks.fenced(command) for command in (*tasks.COMMANDS, tasks.SUBMIT)]
TEXT = 100


class Tokenizer:
    eos_token_id = END

    def encode(self, text, add_special_tokens=False):
        ids = []
        for number, part in enumerate(text.split("<|im_end|>")):
            ids += [END] * (number > 0) + [TEXT + ord(letter) for letter in part]
        return ids

    def decode(self, ids, skip_special_tokens=False):
        end = "" if skip_special_tokens else "<|im_end|>"
        return "".join(end if id == END else ANSWERS[id - 1] if id < TEXT else chr(id - TEXT) for id in ids)

    def apply_chat_template(self, messages, add_generation_prompt=True, **_):
        texts = [f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in messages]
        return self.encode("".join(texts) + ("<|im_start|>assistant\n" if add_generation_prompt else ""))


def log_probs(model, instance, turn):
    """Returns the log-probability of each answer."""
    values = model[instance, turn]
    total = math.log(math.fsum(map(math.exp, values)))
    return [value - total for value in values]


class Server:
    def __init__(self, model, seed):
        self.model, self._random, self._tokenizer = copy.deepcopy(model), random.Random(seed), Tokenizer()
        self._shim = PolicyShim(self._sample, self._tokenizer, model=loop.MODEL)
        self.url = self._shim.url

    def refit(self, model, version):
        with self._shim.update(version):
            self.model = copy.deepcopy(model)

    def _sample(self, ids, params):
        text = self._tokenizer.decode(ids)
        instance = next((name for name in tasks.FIX if name in text), tasks.PARSE)
        turn = min(sum(END < id < TEXT for id in ids), tasks.TURNS - 1)
        scores = log_probs(self.model, instance, turn)
        answer = self._random.choices(range(len(ANSWERS)), [math.exp(score) for score in scores])[0]
        return {"token_ids": [1 + answer, END], "log_probs": [scores[answer], 0.0], "finish_reason": "stop"}


class Learner:
    def __init__(self, rate):
        self.model = {(name, turn): [0.0] * len(ANSWERS) for name in tasks.FIX for turn in range(tasks.TURNS)}
        self.rate = rate

    def learn(self, samples, advantages):
        """Makes one step along the gradient of the policy. Returns the largest distance of an importance ratio from 1 before the step."""
        distance, before = 0.0, copy.deepcopy(self.model)
        for sample, advantage in zip(samples, advantages):
            for number, turn in enumerate(sample.turns if sample.judged else ()):
                scores = log_probs(before, sample.instance_id, number)
                answer = sample.response_ids[turn.start] - 1
                score = scores[answer] if 0 <= answer < len(ANSWERS) else -math.inf
                ratio = math.exp(score - turn.log_probs[0])
                distance = max(distance, loop.require_ratio(sample, len(sample.prompt_ids) + turn.start, ratio))
                values = self.model[sample.instance_id, number]
                for other, its in enumerate(scores):
                    values[other] += self.rate * advantage * ((other == answer) - math.exp(its))
        return distance


if __name__ == "__main__":
    given = loop.parser(__doc__, 1.0).parse_args()
    learner = Learner(given.rate)
    loop.train_with(given, Server(learner.model, given.seed), learner)
