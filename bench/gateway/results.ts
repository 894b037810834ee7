/** Commits results in place of a worker, with trajectories of a given size, so that only the gateway is measured. */
import {
  encodeArtifact,
  type Farm,
  parseRolloutId,
  Result,
  type RunRecord,
  type Turn,
} from '@swefarm/shared';

/** The turns of a trajectory, and its tokens over all turns. */
type TrajectorySize = { turns: number; tokens: number };

/** All rollouts share one artifact except for its id, because the encoding is not measured. */
export async function commitAll(
  farm: Farm,
  rollouts: readonly string[],
  size: TrajectorySize,
): Promise<void> {
  const blob = await encodeArtifact(artifactOf(size));
  for (const id of rollouts) {
    const { runId, instanceId, index } = parseRolloutId(id);
    const run = await farm.runs.get(runId);
    const claim = await farm.journal.claim(id, { worker: 'bench', node: 'bench' });
    if (!run || claim.status !== 'claimed') throw new Error(`${id} cannot be claimed: ${claim.status}`);
    const artifact = await farm.artifacts.put(id, claim, blob);
    await farm.commit(run, resultOf(run, id, instanceId, index, artifact, size));
  }
}

function artifactOf({ turns, tokens }: TrajectorySize) {
  const each = Math.floor(tokens / turns);
  const generated = Math.floor(each / 4);
  let seen = 0;
  const list = Array.from({ length: turns }, (_, turn): Turn => {
    const prompt_suffix = Int32Array.from(
      { length: each - generated },
      (_value, at) => (turn * 977 + at * 31) % 150_000,
    );
    const generation = Int32Array.from(
      { length: generated },
      (_value, at) => (turn * 577 + at * 17) % 150_000,
    );
    const prefix_length = seen;
    seen += each;
    return {
      message: 2 + turn * 2,
      finish_reason: 'stop',
      model_seconds: 1,
      usage: { prompt_tokens: seen - generated, completion_tokens: generated },
      policy_version: { start: null, end: null },
      tokens: {
        prefix_length,
        prompt_suffix,
        generation,
        log_probs: Float32Array.from(generation, (id) => -id / 1e6),
      },
      commands: [],
    };
  });
  const said = 'What the model says and what the shell answers. '.repeat(20);
  return {
    format: 'swefarm-artifact-1' as const,
    rollout_id: '',
    attempt: 1,
    instance_id: '',
    trajectory: {
      format: 'swefarm-trajectory-1' as const,
      token_mode: 'echo' as const,
      model: 'm',
      endpoint: null,
      messages: [
        { role: 'system' as const, content: 'You mend.' },
        { role: 'user' as const, content: 'It breaks.' },
        ...list.flatMap(() => [
          { role: 'assistant' as const, content: said },
          { role: 'user' as const, content: said },
        ]),
      ],
      turns: list,
      exit_status: 'submitted' as const,
    },
    patch: 'diff',
    report: null,
    test_log: null,
    eval_script: null,
    failure_detail: null,
  };
}

const resultOf = (
  run: RunRecord,
  rollout_id: string,
  instance_id: string,
  rollout_index: number,
  artifact: string,
  { turns, tokens }: TrajectorySize,
): Result =>
  Result.parse({
    format: 'swefarm-result-1',
    run_id: run.run_id,
    rollout_id,
    instance_id,
    rollout_index,
    attempt: 1,
    worker: 'bench',
    node: 'bench',
    runtime: 'host',
    outcome: 'judged',
    resolved: true,
    reward: 1,
    reward_row: 'resolved',
    reward_table: `${run.reward.table}:${run.reward.hash}`,
    turns,
    exit_status: 'submitted',
    failure: null,
    facts: null,
    tokens: { prompt: tokens, completion: tokens },
    policy_version: null,
    seconds: {
      queued: 0,
      image: 0,
      sandbox: 0,
      agent: 0,
      model: 0,
      command: 0,
      patch: 0,
      evaluation: 0,
      total: 0,
    },
    artifact,
    finished_at: Date.now(),
  });
