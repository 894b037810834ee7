"""
TRL's trainers over a farm: ``rollout_func`` and ``reward`` for GRPOTrainer, ``FarmWorker`` and ``FarmTransfer`` for AsyncGRPOTrainer.
See docs/trainers.md. The sources of TRL's rules are trainer/grpo_trainer.py and experimental/async_grpo of TRL 1.16.0.
"""

from __future__ import annotations

import asyncio
import itertools
import queue
import random
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Union

from ..farm import Farm
from ..sample import Sample, judged_advantages
from .batch import ends_token, fitted, is_overlong, overlong_of, play, row_in, rows_by_id, run_of, sampling_of, versions_of, why_unjudged

if TYPE_CHECKING:
    from ..run import Run

#: Sampling settings among TRL's arguments. TRL's ``seed`` is the seed of the trainer.
SAMPLED = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
#: Longest prompt in tokens that is trained on, by default. TRL has no limit.
MAX_PROMPT = 32_768


def prompts(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of TRL's ``train_dataset``. TRL passes on only the column ``prompt``, so its message names the instance."""
    return [
        {"prompt": [{"role": "user", "content": str(row.get("problem_statement") or ""), "instance_id": name}]}
        for name, row in rows_by_id(rows).items()
    ]


def rollout_func(
    source: "Union[Farm, Run]",
    *,
    rows: Optional[Iterable[Mapping[str, Any]]] = None,
    policy_urls: Optional[Sequence[str]] = None,
    model: Optional[str] = None,
    max_prompt: int = MAX_PROMPT,
    overlong: str = "mask",
    **settings: Any,
) -> Callable[[list[Any], Any], dict[str, list[Any]]]:
    """
    Returns GRPOTrainer's ``rollout_func``. ``rows``: the dataset rows that :func:`prompts` was given, unless the gateway has them.
    ``policy_urls``: default: TRL's vLLM server, else the policy of the run. ``model``: the model's name at these servers; default: the
    model's path. ``overlong``: ``mask`` or ``keep`` (:meth:`swefarm.Sample.fit`). ``settings``: those of :meth:`swefarm.Farm.run` if
    ``source`` is a farm. An unjudged sample has the reward None and a mask of zeros. The function returns when every rollout has ended, so
    no rollout runs when TRL sends weights.
    """
    overlong_of(overlong)
    run = run_of(source, "trl", **settings)
    by_id = rows_by_id(rows)
    calls: dict[tuple[str, int], int] = {}

    def farm_rollouts(prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        args, step = trainer.args, int(trainer.state.global_step)
        mode = "train" if trainer.model.training else "eval"
        call = calls[mode, step] = calls.get((mode, step), -1) + 1
        # A resumed trainer repeats the calls from its checkpoint on, so they have the same ids.
        key = f"{mode}-{step}-{call}-{trainer.accelerator.process_index}"
        urls = policy_urls or _server_urls(args)
        common = {
            **{"policy_urls": urls, "model": (model or str(trainer.model.config._name_or_path)) if urls else model, "version": str(step)},
            "sampling": sampling_of({name: getattr(args, name, None) for name in SAMPLED}),
            "max_response_tokens": int(args.max_completion_length),
        }
        rollouts = [
            {"instance": row_in(_named(prompt), by_id), "group": key, "index": at, "request_id": f"{key}-{at}", **common}
            for at, prompt in enumerate(prompts)
        ]
        token = ends_token(trainer.processing_class)
        samples = [fitted(one, max_prompt, int(args.max_completion_length), overlong, token) for one in play(run, rollouts)]
        return {
            "prompt_ids": [list(one.prompt_ids) for one in samples],
            "completion_ids": [list(one.response_ids) for one in samples],
            "logprobs": [list(one.log_probs) for one in samples],
            "env_mask": [list(one.mask) for one in samples],
            "farm_reward": [one.reward for one in samples],
            "farm_overlong": [is_overlong(one) for one in samples],
            "farm_rollout": [one.rollout_id for one in samples],
            "farm_why": [why_unjudged(one) for one in samples],
        }

    return farm_rollouts


def reward(farm_reward: list[Optional[float]], farm_overlong: list[bool], **kwargs: Any) -> list[Optional[float]]:
    """Returns the farm's rewards: the reward function for :func:`rollout_func`. TRL excludes None from the mean of a group."""
    log: Callable[[str, float], None] = kwargs.get("log_metric") or (lambda name, value: None)
    log("farm/judged", sum(value is not None for value in farm_reward) / max(1, len(farm_reward)))
    log("farm/overlong", sum(farm_overlong) / max(1, len(farm_overlong)))
    # Columns of TRL's table of completions: the rollout's name for `swefarm show`, and the failure of an unjudged sample.
    for column in ("farm_rollout", "farm_why") if "log_extra" in kwargs else ():
        kwargs["log_extra"](column, kwargs[column])
    return farm_reward


class FarmWorker:
    """
    AsyncGRPOTrainer's ``rollout_worker``. Plays ``rows`` in a new order in each epoch, ``n`` rollouts each, at most ``in_flight`` groups
    at a time. At most two more groups wait in the trainer's queue. Unjudged and overlong samples are in no queue and no mean. ``model``:
    the policy's name at its endpoints, or a function from the version to the name, such as ``lambda v: f"lora-v{v}"``. A running rollout
    follows each new version. A resumed trainer plays new rollouts, and the farm cancels those of the killed trainer.
    """

    def __init__(
        self,
        source: "Union[Farm, Run]",
        rows: Iterable[Mapping[str, Any]],
        *,
        n: int,
        model: Union[str, Callable[[int], str]],
        policy_urls: Sequence[str],
        in_flight: int = 8,
        max_prompt: int = MAX_PROMPT,
        max_response: int = 32_768,
        std: bool = True,
        seed: Optional[int] = None,
        **settings: Any,
    ) -> None:
        self.run = run_of(source, "trl-async", **settings)
        self.rows = list(rows_by_id(rows).values())
        self.n, self.in_flight, self.max_prompt, self.max_response, self.std = n, in_flight, max_prompt, max_response, std
        self.policy_urls = list(policy_urls)
        self.model = model if callable(model) else lambda version: model
        self.version = 0
        self.rollout_buffer: "queue.Queue[Any]" = queue.Queue()
        self.metrics_queue: "queue.Queue[dict[str, Any]]" = queue.Queue()
        self._random = random.Random(seed)
        self._announced: Optional[int] = None
        self._error: Optional[BaseException] = None
        self._stopped = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._beat_at = time.monotonic()

    def start(self) -> None:
        """Starts the rollouts. TRL calls this after the first transfer of weights."""
        self._beat_at = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="swefarm-trl", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Cancels the running rollouts."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=60)

    def update_model_version(self, model_version: int) -> None:
        """Makes new turns use this version, unless :class:`FarmTransfer` did so."""
        self.version = model_version
        if self._announced != model_version:
            self.run.policy(self.policy_urls, model=self.model(model_version), version=str(model_version))
            self._announced = model_version

    def update(self, version: int) -> Any:
        """Returns the context manager around a change of the weights to ``version``: :meth:`swefarm.Run.update`."""
        self._announced = version
        return self.run.update(str(version), urls=self.policy_urls, model=self.model(version))

    def check_health(self, stale_after_s: float) -> None:
        """
        Raises RuntimeError if the thread failed, or did not run for ``stale_after_s`` seconds. Slow rollouts do not count, because a group
        may take hours.
        """
        if self._error is not None:
            raise RuntimeError(f"the farm's rollouts stopped: {self._error}") from self._error
        silent = time.monotonic() - self._beat_at
        if silent > stale_after_s and not self._stopped.is_set():
            raise RuntimeError(f"the thread that plays {self.run.name} did not run for {silent:.0f} s: another thread blocks Python")

    def _work(self) -> None:
        try:
            asyncio.run(self._play())
        except BaseException as error:  # check_health reports the error to the trainer.
            self._error = error

    async def _play(self) -> None:
        playing: "set[asyncio.Task[list[Sample]]]" = set()
        instances, numbers = self._instances(), itertools.count()
        while not self._stopped.is_set():
            self._beat_at = time.monotonic()
            while len(playing) < self.in_flight and self.rollout_buffer.qsize() < 2 * self.n:
                playing.add(asyncio.ensure_future(self._group(next(numbers), next(instances))))
            if not playing:
                await asyncio.sleep(0.1)  # The trainer is slower than the farm.
                continue
            done, playing = await asyncio.wait(playing, timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
            for group in done:
                self._deliver(group.result())
        for group in playing:
            group.cancel()

    def _instances(self) -> Iterator[Mapping[str, Any]]:
        while True:
            rows = self.rows[:]
            self._random.shuffle(rows)
            yield from rows

    async def _group(self, number: int, row: Mapping[str, Any]) -> list[Sample]:
        rollouts = (self.run.rollout(row, group=str(number), index=at, max_response_tokens=self.max_response) for at in range(self.n))
        return list(await asyncio.gather(*rollouts))

    def _deliver(self, group: Sequence[Sample]) -> None:
        import numpy
        from trl.experimental.async_grpo.async_rollout_worker import RolloutSample  # type: ignore[import-not-found]

        samples = [one for one in (each.fit(self.max_prompt, self.max_response, "drop") for each in group) if one and one.turns]
        self.metrics_queue.put({"farm/judged": (float(sum(one.judged for one in group)), float(len(group)))})
        for sample, advantage in zip(samples, judged_advantages(samples, std=self.std)):
            if not sample.judged:
                continue
            zeros = [0] * len(sample.prompt_ids)
            versions = versions_of(sample, self.version)
            self.rollout_buffer.put(
                RolloutSample(
                    prompt=[],
                    completion=[],
                    input_ids=numpy.array([*sample.prompt_ids, *sample.response_ids], numpy.int64),
                    completion_mask=numpy.array([*zeros, *sample.mask], numpy.int64),
                    old_log_probs=numpy.array([*zeros, *sample.log_probs], numpy.float32),
                    advantage=advantage,
                    model_version=versions[0] if versions else self.version,
                    group_id=int(sample.group),
                    metrics={"reward": float(sample.reward or 0.0), "turns": float(len(sample.turns))},
                    enqueued_at=time.time(),
                )
            )


class FarmTransfer:
    """
    AsyncGRPOTrainer's ``weight_transfer``. ``inner`` (TRL's WeightTransferClient) sends the weights, and this class reports the pause and
    the new version to the farm, so that a request that the server delays does not fail.
    """

    def __init__(self, inner: Any, worker: FarmWorker) -> None:
        self.inner, self.worker = inner, worker
        self._update: Any = None

    def init_weight_transfer(self) -> None:
        self.inner.init_weight_transfer()

    def pause(self) -> None:
        self._update = self.worker.update(self.worker.version + 1)
        self._update.__enter__()
        self.inner.pause()

    def send_weights(self, iterator: Iterator[tuple[str, Any]]) -> None:
        self.inner.send_weights(iterator)

    def resume(self) -> None:
        self.inner.resume()
        self._update.__exit__(None, None, None)
        self._update = None

    def destroy(self) -> None:
        self.inner.destroy()


def _named(prompt: Any) -> dict[str, Any]:
    """Returns the keys of a prompt that name its instance: the keys of its messages or, if the prompt is a text, the text itself."""
    if isinstance(prompt, str):
        return {"instance_id": prompt}
    return {key: value for message in prompt for key, value in message.items() if key in ("instance", "instance_id") and value}


def _server_urls(args: Any) -> Optional[list[str]]:
    """Returns the address of TRL's vLLM server. Returns None if TRL has no server, or runs it inside of the trainer."""
    if not args.use_vllm or args.vllm_mode != "server":
        return None
    return [f"{args.vllm_server_base_url or f'http://{args.vllm_server_host}:{args.vllm_server_port}'}".rstrip("/") + "/v1"]
