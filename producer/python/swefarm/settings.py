"""Settings of runs, and dataset rows, in the form of the farm's API."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Mapping, Optional, Sequence


@dataclass(frozen=True)
class Sampling:
    """
    The distribution that the policy samples from. Each request contains every key, because servers take missing ones from the model's
    generation_config.json.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    #: -1: all tokens.
    top_k: int = -1
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    #: Most tokens of one answer; None: as many as the context allows.
    max_tokens: Optional[int] = None
    stop: Sequence[str] = ()
    #: The farm derives a seed for each rollout and turn from this number; None: no seed.
    seed: Optional[int] = None

    def settings(self) -> dict[str, Any]:
        """Returns the keys of ``policy.sampling`` of a run."""
        given = {**asdict(self), "stop": list(self.stop) or None}
        return {key: value for key, value in given.items() if value is not None}


def rows_of(rows: "Optional[Sequence[Any]]") -> Optional[list[Any]]:
    """Returns rows in the form of the API: mappings and ids of instances. Converts arrays of numpy to lists, because JSON lacks them."""
    if rows is None:
        return None
    return [row if isinstance(row, str) else plain(row) for row in rows]


def plain(value: Any) -> Any:
    """Converts the mappings and lists of data frames and data sets to dicts and lists."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    convert = getattr(value, "tolist", None) or getattr(value, "isoformat", None)
    return plain(convert()) if callable(convert) else value


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two trees. Where both have a mapping, its keys are merged; elsewhere ``above`` wins."""
    tree = dict(below)
    for key, value in above.items():
        inner = tree.get(key)
        tree[key] = merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return tree
