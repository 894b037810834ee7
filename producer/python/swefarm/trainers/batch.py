"""Code that the adapters share: dataset rows, runs, sampling settings, rollouts of a batch, and samples in a trainer's lengths."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import threading
import uuid
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Coroutine, Iterable, Iterator, Mapping, Optional, Sequence, TypeVar, Union, cast

from ..farm import Farm
from ..sample import Failure, Sample, Turn

if TYPE_CHECKING:
    from ..run import Run

T = TypeVar("T")

#: Values of ``overlong`` in every adapter. ``drop`` of :meth:`swefarm.Sample.fit` is no value: ``mask`` already removes the reward.
OVERLONG = ("mask", "keep")

#: Sampling settings of a rollout, by the farm's names. A server reads missing settings from the model's generation_config.json.
SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty"),
    *("stop", "seed", "max_tokens"),
)


def run_of(source: "Union[Farm, Run]", name: str, **settings: Any) -> "Run":
    """
    Returns ``source`` if it is a run, else a new run of this farm with a unique name. A resumed trainer gets the samples of its first
    process again only if the run has a fixed name.
    """
    if isinstance(source, Farm):
        return source.run(f"{name}-{uuid.uuid4().hex[:12]}", **settings)
    if settings:
        raise TypeError(f"{', '.join(settings)}: settings of a new run; give them to Farm.run, which made this one")
    return source


def rows_by_id(rows: Optional[Iterable[Mapping[str, Any]]]) -> dict[str, Mapping[str, Any]]:
    """Returns dataset rows by ``instance_id``. Raises ValueError for a row without one."""
    found: dict[str, Mapping[str, Any]] = {}
    for number, row in enumerate(rows or (), 1):
        if not row.get("instance_id"):
            raise ValueError(f"rows: row {number} has no instance_id; pass rows of a dataset of the farm")
        found[str(row["instance_id"])] = row
    return found


@functools.lru_cache(maxsize=4)
def rows_in(path: str) -> dict[str, Mapping[str, Any]]:
    """Returns the dataset rows of a file by ``instance_id``. The file has one JSON object per line. Raises OSError and ValueError."""
    with open(path, encoding="utf-8") as lines:
        return rows_by_id(json.loads(line) for line in lines if line.strip())


@functools.lru_cache(maxsize=None)
def run_of_process(prefix: str, name: Optional[str], settings: str = "{}") -> "Run":
    """
    Returns the run ``name`` of the environment's farm; without a name, a run unique to this process. Every call returns the same run.
    ``settings``: those of :meth:`swefarm.Farm.run` as JSON.
    """
    return Farm().run(name or f"{prefix}-{uuid.uuid4().hex[:12]}", **json.loads(settings))


def row_in(columns: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> "Union[Mapping[str, Any], str]":
    """
    Returns the dataset row that a trainer's columns name. ``instance`` is a row or its JSON text; ``instance_id`` is the id of one of
    ``rows``. Without rows, this function returns the id, which names an instance of the gateway's dataset. Raises ValueError.
    """
    given = columns.get("instance")
    if given:
        row: Mapping[str, Any] = json.loads(given) if isinstance(given, str) else given
        return row
    name = columns.get("instance_id")
    if not name:
        raise ValueError(f"instance_id: missing among {', '.join(sorted(columns)) or 'no columns'}; name the instance in the trainer's row")
    if rows and name not in rows:
        raise ValueError(f"instance_id: {name} is in none of the {len(rows)} rows; pass the rows that the trainer's dataset was made of")
    return rows.get(str(name), str(name))


def overlong_of(value: Any) -> str:
    """Returns a value of OVERLONG. Raises ValueError for another value."""
    if value not in OVERLONG:
        raise ValueError(f"overlong: expected one of {', '.join(OVERLONG)}, got {value!r}; change it in the settings of the adapter")
    return str(value)


def sampling_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of SAMPLING that are neither None nor an empty list. A ``top_k`` of 0 becomes -1: all tokens."""
    given = {name: params[name] for name in SAMPLING if params.get(name) not in (None, [])}
    if given.get("top_k") == 0:
        given["top_k"] = -1
    return given


def play(run: "Run", rollouts: Sequence[Mapping[str, Any]]) -> list[Sample]:
    """
    Plays rollouts concurrently, and returns the samples in the same order. ``rollouts``: arguments of :meth:`swefarm.Run.rollout`, whose
    errors this function raises. An interrupt cancels all rollouts.
    """

    async def together() -> list[Sample]:
        return list(await asyncio.gather(*(run.rollout(**rollout) for rollout in rollouts)))

    return in_own_loop(together())


def in_own_loop(work: Coroutine[Any, Any, T]) -> T:
    """
    Runs a coroutine and returns its result, even in a thread whose event loop already runs, such as a notebook's. An interrupt cancels
    the coroutine.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    loop, ended = Future[Any](), Future[T]()

    async def whole() -> T:
        loop.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    def drive() -> None:
        try:
            ended.set_result(asyncio.run(whole()))
        except BaseException as error:
            ended.set_exception(error)

    # A daemon thread does not delay process exit.
    threading.Thread(target=drive, name="swefarm-loop", daemon=True).start()
    try:
        return ended.result()
    except BaseException:
        if not ended.done():
            running, task = loop.result()
            with contextlib.suppress(RuntimeError):  # The loop has closed.
                running.call_soon_threadsafe(task.cancel)
        raise


def fitted(sample: Sample, max_prompt: int, max_response: int, overlong: str, token: int) -> Sample:
    """
    Returns the sample within the trainer's lengths. An empty prompt or response becomes ``token``. A sample without sampled tokens loses
    its reward, because the reward would change the mean of its group and train nothing. Raises ValueError for an unknown ``overlong``.
    """
    fit = _fit(sample, max_prompt, max_response, overlong)
    if fit.judged and not fit.turns:
        fit = replace(fit, reward=None, failure=Failure("client", "no_tokens", "no sampled token to train on"))
    if not fit.response_ids:
        fit = replace(fit, response_ids=[token], turns=(), spans=())
    return fit if fit.prompt_ids else replace(fit, prompt_ids=[token])


def fitted_group(samples: Sequence[Sample], max_prompt: int, max_response: int, overlong: str) -> tuple[list[Sample], list[Sample]]:
    """Returns the samples within the trainer's lengths, and those of them that are judged and have sampled tokens."""
    fits = [_fit(sample, max_prompt, max_response, overlong) for sample in samples]
    return fits, [fit for fit in fits if fit.judged and fit.turns]


def _fit(sample: Sample, max_prompt: int, max_response: int, overlong: str) -> Sample:
    return cast(Sample, sample.fit(max_prompt, max_response, overlong_of(overlong)))


def turns_of(sample: Sample) -> "Iterator[tuple[list[int], list[int], list[float], Turn]]":
    """Yields for each turn all tokens before it, the sampled ids, their log-probabilities, and the turn."""
    for turn in sample.turns:
        prompt = [*sample.prompt_ids, *sample.response_ids[: turn.start]]
        yield prompt, list(sample.response_ids[turn.start : turn.stop]), list(turn.log_probs), turn


def is_overlong(sample: Sample) -> bool:
    """Returns whether a token limit of the farm or of the trainer cut the sample."""
    return sample.cut or sample.truncated


def why_unjudged(sample: Sample) -> str:
    """Returns class and message of the failure of an unjudged sample, else an empty text."""
    return f"{sample.failure.cls}: {sample.failure.message}"[:200] if sample.failure and not sample.judged else ""


def versions_of(sample: Sample, asked: Optional[int] = None) -> Optional[tuple[int, int]]:
    """
    Returns the oldest and the newest policy version of the sample. If a version is missing or not a number, returns ``asked`` twice, or
    None without ``asked``.
    """
    names = [span.version for span in sample.spans]
    if names and all(name.isdecimal() for name in names):
        numbers = [int(name) for name in names]
        return min(numbers), max(numbers)
    return None if asked is None else (asked, asked)


def ends_token(tokenizer: Any) -> int:
    """Returns a token for empty sequences: the tokenizer's end-of-text token, its padding token, or 0."""
    tokens = (getattr(tokenizer, name, None) for name in ("eos_token_id", "pad_token_id"))
    return next((int(token) for token in tokens if token is not None), 0)
