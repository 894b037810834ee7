"""
swefarm.trainers.verl inside a real verl without its GPU parts: classes through verl's registries from our YAML, rows through its
dataset class, trajectories through its AgentLoopWorker, scores through its reward manager, advantages through its registry.

usage: check.py FOLDER (tools | loop | short | die) [HOST:PORT...]   Prints one JSON object a line; exit code 1 when a check fails.
HOST:PORT is the address of an inference server. verl's own load balancer, a Ray actor, passes the addresses to the agent loop.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")

FOLDER, MODE, SERVERS = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[2] / "producer" / "python"
CONFIG = PACKAGE / "swefarm" / "trainers" / "verl" / "config"
TOKENIZER = HERE.parents[1] / "fixtures" / "tokenizer" / "tokenizer.json"
TRAJECTORIES = 16
#: In mode `short`, less than the tokens of any rollout of the script.
RESPONSE_LENGTH = 200 if MODE == "short" else 12000
STEP = 5
sys.path.insert(0, str(PACKAGE))
os.environ["VERL_USE_EXTERNAL_MODULES"] = "swefarm.trainers.verl.advantage"
# Ray's workers import swefarm.trainers.verl with verl. Here the package is not installed.
os.environ["PYTHONPATH"] = str(PACKAGE)

import numpy as np  # noqa: E402
import ray  # noqa: E402
import torch  # noqa: E402
import verl  # noqa: E402
from hydra import compose, initialize_config_dir  # noqa: E402
from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config  # noqa: E402
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker, _agent_loop_registry  # noqa: E402
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager  # noqa: E402
from verl.protocol import DataProto  # noqa: E402
from verl.tools.tool_registry import initialize_tools_from_config  # noqa: E402
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage, get_adv_estimator_fn  # noqa: E402
from verl.trainer.ppo.reward import get_custom_reward_fn  # noqa: E402
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn  # noqa: E402
from verl.workers.rollout.llm_server import LLMServerClient  # noqa: E402
from verl.workers.rollout.replica import TokenOutput  # noqa: E402
from verl.workers.rollout.router import get_router_handle  # noqa: E402


def report(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def require(promise: bool, what: str) -> None:
    if not promise:
        report(broken=what)
        sys.exit(1)


def make_model(folder: Path) -> None:
    """Writes a model folder without weights, with the test kit's tokenizer."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(TOKENIZER), eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    tokenizer.chat_template = (HERE / "chatml.jinja").read_text()
    tokenizer.save_pretrained(folder)
    Qwen2Config(architectures=["Qwen2ForCausalLM"], vocab_size=len(tokenizer)).save_pretrained(folder)


make_model(FOLDER / "model")
tokenizer = AutoTokenizer.from_pretrained(FOLDER / "model")
with initialize_config_dir(config_dir=str(Path(verl.__file__).parent / "trainer/config"), version_base=None):
    rollout = "actor_rollout_ref.rollout"
    config = compose(
        "ppo_trainer",
        overrides=[
            f"actor_rollout_ref.model.path={FOLDER}/model",
            f"{rollout}.name=vllm",
            f"{rollout}.n=1",
            f"{rollout}.multi_turn.enable=True",
            f"{rollout}.multi_turn.format=hermes",
            f"{rollout}.multi_turn.tool_config_path={CONFIG}/tools.yaml",
            f"{rollout}.multi_turn.max_tool_response_length=4000",
            f"{rollout}.agent.agent_loop_config_path={FOLDER}/agent_loop.yaml",
            f"{rollout}.calculate_log_probs=True",
            f"data.train_files={FOLDER}/train.parquet",
            "data.max_prompt_length=3000",
            f"data.max_response_length={RESPONSE_LENGTH}",
            "data.return_raw_chat=True",
            "reward.custom_reward_function.path=pkg://swefarm.trainers.verl.reward",
            "reward.custom_reward_function.name=compute_score",
            # The worker below belongs to the older trainer, which accepts one sample of every rollout.
            "trainer.use_v1=False",
        ],
    )

with contextlib.redirect_stdout(io.StringIO()):
    tools = initialize_tools_from_config(CONFIG / "tools.yaml")
dataset = RLHFDataset(data_files=str(FOLDER / "train.parquet"), tokenizer=tokenizer, config=config.data, processor=None)
report(verl=verl.__version__, tools=[tool.name for tool in tools], rows=len(dataset))
gold = base64.b64encode((FOLDER / "gold.patch").read_bytes()).decode()


def called(name: str, **arguments: str) -> str:
    call = json.dumps({"name": name, "arguments": arguments})
    return f"I go on.\n<tool_call>\n{call}\n</tool_call><|im_end|>"


class Model:
    """Stands in for verl's client of inference servers. In mode tools every second trajectory never submits."""

    def __init__(self) -> None:
        self.turns: dict[str, int] = {}
        self.order: list[str] = []

    async def generate(self, request_id: str, *, prompt_ids: Any, sampling_params: Any, **_: Any) -> TokenOutput:
        if request_id not in self.turns:
            self.order.append(request_id)
        turn = self.turns[request_id] = self.turns.get(request_id, 0) + 1
        submits = self.order.index(request_id) % 2 == 0
        if MODE == "die":
            said = called("bash", command="sleep 600" if turn > 1 else "echo begun")
        else:
            said = {
                1: called("bash", command="echo once >> /tmp/runs && wc -l < /tmp/runs && git status --short"),
                2: called("bash", command=f"echo {gold} | base64 -d | git apply && git diff --stat"),
                3: called("submit_solution") if submits else "That is all.<|im_end|>",
            }.get(turn, "That is all.<|im_end|>")
        ids = tokenizer.encode(said, add_special_tokens=False)
        # A second turn shows that the sandbox of the trajectory has run a command.
        if MODE == "die" and len(self.turns) == TRAJECTORIES and min(self.turns.values()) == 2:
            report(state="working")
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), stop_reason="completed")


class RewardHandle:
    """Stands in for the Ray actor with verl's reward manager; the manager and our function are the real ones."""

    def __init__(self) -> None:
        self.manager: Any = None
        self.compute_score = self

    async def remote(self, data: DataProto) -> dict[str, Any]:
        if self.manager is None:
            score = get_custom_reward_fn(config)
            self.manager = NaiveRewardManager(config=config, tokenizer=tokenizer, compute_score=score)
            # Some versions of verl do not detect that a partial is asynchronous, and would take a coroutine as the score.
            self.manager.is_async_reward_score = True
        return await self.manager.run_single(data)


def worker(reward: Any, client: Any = None) -> AgentLoopWorker:
    with contextlib.redirect_stdout(io.StringIO()):
        return AgentLoopWorker(config, client or Model(), reward_loop_worker_handles=reward)


def balancer_of(address: str) -> Any:
    """Returns verl's load balancer for one server, by the server's address. The server's actor is None, because no test calls it."""
    options = {"include_dashboard": False, "log_to_driver": False, "_node_ip_address": "127.0.0.1"}
    ray.init(num_cpus=2, object_store_memory=80_000_000, **options)
    return get_router_handle(servers={address: None})


def batch_of(count: int, agent: str) -> DataProto:
    rows = [dict(dataset[0]) for _ in range(count)]
    for row in rows:
        row["agent_name"] = agent
    batch = DataProto.from_single_dict(collate_fn(rows))
    # verl 0.9.1 passes the step to an agent loop in this way.
    batch.non_tensor_batch["global_steps"] = np.array([STEP] * count, dtype=object)
    batch.meta_info = {"global_steps": STEP, "validate": False}
    return batch


def advantages(name: str, rewards: torch.Tensor, mask: torch.Tensor, groups: Any) -> torch.Tensor:
    """Calls an estimator as verl's trainer calls registered estimators."""
    estimator = get_adv_estimator_fn(name)
    return estimator(token_level_rewards=rewards, response_mask=mask, config=config.algorithm, index=groups)[0]


def check_tools() -> None:
    out = asyncio.run(worker([RewardHandle()]).generate_sequences(batch_of(TRAJECTORIES, "tool_agent")))
    scores = out.batch["rm_scores"].sum(dim=-1)
    require(torch.all(scores == 1.0).item(), f"rm_scores of the batch: {scores.tolist()} {out.non_tensor_batch.get('why')}")
    require(all(out.non_tensor_batch["judged"] == 1.0), "every trajectory is judged")
    require(all(out.non_tensor_batch["reward_components"] == "{}"), "a reward of tests has no components")
    text = tokenizer.decode(out.batch["responses"][0])
    require("<returncode>0</returncode>" in text or "1\n" in text, f"the model saw its observations: {text[:400]}")
    report(trajectories=len(scores), scores=scores.tolist(), turns=out.non_tensor_batch["__num_turns__"].tolist())


def check_loop() -> None:
    first, second = SERVERS
    balancer = balancer_of(first)
    client = LLMServerClient(config, load_balancer_handle=balancer)
    loops = worker(None, client)
    require("swefarm" in _agent_loop_registry, "the loop's name")
    batch = batch_of(8, "swefarm")
    out = asyncio.run(loops.generate_sequences(batch))
    report(why=[str(why) for why in out.non_tensor_batch["why"]])
    scores = out.batch["rm_scores"].sum(dim=-1)
    mask = out.batch["response_mask"]
    judged = torch.tensor(out.non_tensor_batch["judged"].astype(bool))
    # By the script, the endpoint refuses one of the eight rollouts. The batch includes this rollout, but no token of it is trained on.
    require(judged.sum() == 7, f"all rollouts except one are judged: {judged.tolist()}")
    require(int(mask[~judged].sum()) == 0 and int(mask[judged].sum()) > 0, "only judged samples are trained on")
    require(set(scores[judged].tolist()) == {0.0, 1.0}, f"right and wrong fixes: {scores.tolist()}")
    require(out.batch["rollout_log_probs"].shape == mask.shape, "each token has a log-probability")
    versions = out.non_tensor_batch["min_global_steps"][judged.numpy()]
    require(all(version == STEP - 1 for version in versions), f"samples have verl's version of the weights: {versions.tolist()}")
    # A lost rollout retains its log-probabilities. Only its mask excludes it.
    unsampled = (mask == 0) & judged[:, None]
    require(bool((out.batch["rollout_log_probs"][unsampled] == 0).all()), "tokens that the policy did not sample have no log-probability")
    # Servers change while verl runs. A rollout uses the servers that the load balancer has at its start.
    ray.get([balancer.remove_servers.remote([first]), balancer.add_servers.remote({second: None})])
    moved = asyncio.run(loops.generate_sequences(batch_of(2, "swefarm")))
    # By the script, the endpoint refuses one of these two rollouts too.
    require(any(moved.non_tensor_batch["judged"]), "rollouts use the new server")
    # The same group with samples that no farm could judge: these samples have no influence.
    os.environ["SWEFARM_GATEWAY_URL"] = "http://127.0.0.1:9"
    lost = asyncio.run(impatient().generate_sequences(batch_of(2, "swefarm")))
    lost_score = lost.batch["rm_scores"].sum(dim=-1)
    require(int(lost.batch["response_mask"].sum()) == 0, "a lost sample trains nothing")
    require(torch.isfinite(lost_score).all().item() and bool((lost_score < 1e-20).all()), "a lost sample has a finite score")
    rewards = torch.cat([out.batch["rm_scores"], lost.batch["rm_scores"]])
    masks = torch.cat([mask, lost.batch["response_mask"]])
    groups = np.array(["one"] * len(rewards), dtype=object)
    ours = advantages("grpo_judged", rewards, masks, groups)
    theirs, _ = compute_grpo_outcome_advantage(out.batch["rm_scores"][judged], mask[judged], groups[:7])
    require(torch.allclose(ours[:8][judged], theirs), "advantages equal verl's own grpo over the judged samples")
    require(bool((ours[8:] == 0).all() and (ours[:8][~judged] == 0).all()), "unjudged samples have no advantage")
    biased, _ = compute_grpo_outcome_advantage(rewards, masks, groups)
    require(not torch.allclose(biased[:8][judged], theirs), "plain grpo would change the advantages of judged samples")
    report(rollouts=8, scores=scores.tolist(), trained=mask.sum(dim=-1).tolist(), lost=lost_score.tolist())


def impatient() -> AgentLoopWorker:
    from swefarm import farm

    farm.PATIENCE_S = 0.5
    return worker(None)


def check_short() -> None:
    """Checks rollouts that are longer than verl's limit: they are not credited, unless the loop has `overlong: keep`."""
    client = LLMServerClient(config, load_balancer_handle=balancer_of(SERVERS[0]))
    loops = worker(None, client)
    masked = asyncio.run(loops.generate_sequences(batch_of(3, "swefarm")))
    facts = masked.non_tensor_batch
    report(masked=[str(why) for why in facts["why"]], cut=facts["swefarm_cut_turns"].tolist())
    scores = masked.batch["rm_scores"].sum(dim=-1)
    require(all(facts["overlong"] == 1.0) and not any(facts["judged"]), "every rollout is overlong, none is judged")
    require(int(masked.batch["response_mask"].sum()) == 0, "no token of an overlong rollout is trained")
    require(bool(((scores > 0) & (scores < 1e-20)).all()), f"overlong rollouts have the score of unjudged samples: {scores.tolist()}")
    ours = advantages("grpo_judged", masked.batch["rm_scores"], masked.batch["response_mask"], np.array(["one"] * 3))
    require(bool((ours == 0).all()), "overlong rollouts have no advantage")
    kept = asyncio.run(loops.generate_sequences(batch_of(3, "swefarm_keep")))
    facts = kept.non_tensor_batch
    trained = kept.batch["response_mask"].sum(dim=-1)
    # By the script, the endpoint refuses one of five rollouts.
    credited = torch.tensor(facts["judged"].astype(bool))
    require(int(credited.sum()) >= 2, f"`overlong: keep` credits overlong rollouts: {facts['why'].tolist()}")
    require(all(facts["overlong"][credited.numpy()] == 1.0), "credited rollouts are reported as overlong")
    require(bool((trained[credited] > 0).all()) and int(trained.max()) <= RESPONSE_LENGTH, f"trained tokens fit: {trained.tolist()}")
    report(kept=kept.batch["rm_scores"].sum(dim=-1).tolist(), trained=trained.tolist(), turns=facts["__num_turns__"].tolist())


def check_die() -> None:
    asyncio.run(worker(None).generate_sequences(batch_of(TRAJECTORIES, "tool_agent")))


{"tools": check_tools, "loop": check_loop, "short": check_short, "die": check_die}[MODE]()
