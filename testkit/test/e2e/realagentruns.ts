/** Plays rollouts of real agents concurrently, each with its own scripted policy, and compares their ids with the sampled ids. */
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { startRedis } from '../../src/launchers/redis.ts';
import type { FaultRuleInput } from '../../src/policy/faults.ts';
import {
  type ScriptedPolicy,
  type ScriptedPolicyOptions,
  startScriptedPolicy,
} from '../../src/policy/server.ts';
import { AGENTS_DIR, digestsOf, type ShownTrajectory, sentDigests } from './realagents.ts';
import { type Line, openScene } from './scene.ts';
import { EXAMPLE_ID } from './scripts.ts';

export type AgentRun = {
  agent: string;
  policy: ScriptedPolicyOptions;
  flags?: readonly string[];
  /** Faults of the policy in this rollout only: the probe at the submit gets answers. */
  faults?: readonly FaultRuleInput[];
};

export type PlayedRun = {
  line: Line;
  /** Null: the rollout failed before it had a trajectory. */
  trajectory: ShownTrajectory | null;
  policy: ScriptedPolicy;
  /** The policy's own count of this rollout. */
  seen: ReturnType<ScriptedPolicy['stats']>['rollouts'][string] | undefined;
  /** Answers that the policy sampled, in order. */
  sent: string[];
};

/** On a machine of two cores, more concurrent agents would delay each other. */
const CONCURRENCY = '4';
/** Another name of the same server, which the client uses after a timeout. */
const otherName = (url: string): string => url.replace('127.0.0.1', 'localhost');

/** Plays the runs on one worker, and returns them by name. */
export async function playRuns(
  dataset: string,
  runtime: string,
  runs: ReadonlyMap<string, AgentRun>,
): Promise<Map<string, PlayedRun>> {
  await using redis = await startRedis();
  await using opened = new AsyncDisposableStack();
  const scene = openScene({
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_RUNTIME: runtime,
    SWEFARM_AGENTS_DIR: AGENTS_DIR,
    SWEFARM_CONCURRENCY: CONCURRENCY,
  });
  const submitted = new Map<string, { id: string; policy: ScriptedPolicy }>();
  for (const [name, { agent, policy: options, flags = [], faults = [] }] of runs) {
    const policy = opened.use(await startScriptedPolicy({ record: true, ...options }));
    const id = await scene.submit`--dataset ${dataset} --agent ${agent} --policy-url ${policy.url}
      --policy-url ${otherName(policy.url)} --model scripted --token-mode token-in --require-tokens ${flags}`;
    const rollout = `${id}.${EXAMPLE_ID}.0`;
    await policy.setFault(...faults.map((fault) => ({ ...fault, rollout })));
    submitted.set(name, { id, policy });
  }
  const worker = await scene.worker`--worker-id real`;
  onTestFinished(() => worker.kill('SIGKILL'));
  const played = new Map<string, PlayedRun>();
  for (const [name, { id, policy }] of submitted) {
    const { stderr, lines } = await scene.collect(id);
    const [line] = lines;
    if (!line) throw new Error(`${name} has no result: ${stderr}`);
    const artifact =
      line.artifact === null ? null : await scene.show(join(scene.folder, `${id}.jsonl#${EXAMPLE_ID}.0`));
    played.set(name, {
      ...{ line, policy, sent: sentDigests(policy, line), seen: policy.stats().rollouts[line.rollout_id] },
      trajectory: (artifact?.trajectory as unknown as ShownTrajectory) ?? null,
    });
  }
  expect(await worker.stop()).toBe(0);
  await scene.expectNothingLeft();
  return played;
}

/**
 * Checks that each answer of the policy is one turn of one line with exactly its ids. `parts`: answers that broke off, which a later answer
 * completes.
 */
export function expectEachAnswerOnce({ sent, trajectory }: PlayedRun, name: string, parts = 0): void {
  const recorded = trajectory ? digestsOf(trajectory) : [];
  const whole = sent.filter((one, index) => recorded.includes(one) && sent.indexOf(one) === index);
  expect(recorded.toSorted(), name).toEqual(whole.toSorted());
  expect(sent.length - whole.length, `${name}: answers that are in no line`).toBeLessThanOrEqual(parts);
}
