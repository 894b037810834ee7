/** Rollouts of the toy agent on a real runtime, with a scripted policy. */
import { join } from 'node:path';
import { installBundle } from '@swefarm/agents';
import { type AgentCard, type AgentConfig, type Instance, PolicyConfig, type Result } from '@swefarm/shared';
import {
  bareInstance,
  bareRun,
  buildToy,
  type ScriptedPolicy,
  type ScriptedPolicyOptions,
  startScriptedPolicy,
  type TurnInput,
  toyCard,
} from '@swefarm/testkit';
import { afterAll, onTestFinished } from 'vitest';
import { openNode, submitOne } from './attempts.ts';
import { scene } from './maintenance/farm.ts';
import { type Machine, openMachine, TESTS } from './matrix/scene.ts';

export const call = (command: string): TurnInput => ({
  tool_calls: [{ name: 'bash', arguments: { command } }],
});
export const FINISH = call('echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT');
/** Looks, resolves the instance, and ends. */
export const SOLVES: TurnInput[] = [call('cat answer.txt'), call('echo 42 >answer.txt'), FINISH];

/** One machine for all tests of a file. */
export function useMachine(runtime: string): () => Promise<Machine> {
  let machine: Promise<Machine> | null = null;
  afterAll(async () => {
    await (await machine)?.[Symbol.asyncDispose]();
  });
  return async () => {
    machine ??= openMachine(runtime).then(async (opened) => {
      const dir = join(opened.folder, 'agents');
      const toy = { name: 'toy', lock: '', version: '1.0', build: buildToy };
      await installBundle(dir, toy, new AbortController().signal);
      return opened;
    });
    return await machine;
  };
}

export type Trial = {
  turns?: TurnInput[];
  words?: string[];
  card?: object;
  agent?: Partial<AgentConfig>;
  policy?: object;
  server?: Partial<ScriptedPolicyOptions>;
  /** A card in place of the toy's. */
  shipped?: AgentCard;
  /** The agent of the farm plays instead of the toy. */
  mini?: boolean;
  instance?: Partial<Instance>;
  flags?: Record<string, unknown>;
};

/** The farm of a trial, its policy, and the run and the instance that are not submitted yet. */
export async function openTrial(machine: Machine, trial: Trial = {}) {
  const { turns = SOLVES, words = [], card = {}, mini = false } = trial;
  const agent = { ...bareRun().agent, ...trial.agent };
  const server = await startScriptedPolicy({
    script: { conversations: [{ variants: [turns] }] },
    ...trial.server,
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const { farm, prefix } = await scene();
  const tokens = { token_mode: 'token-in', require_tokens: true };
  const run = bareRun({
    group_size: 1,
    agent: mini ? agent : { ...agent, type: 'installed', card: trial.shipped ?? toyCard(words, card) },
    policy: PolicyConfig.parse({ urls: [server.url], model: 'm', patience: 5, ...tokens, ...trial.policy }),
    sandbox: { ...bareRun().sandbox, activate: '[ $# = 0 ] && export ACTIVATED=1 PATH="/activated:$PATH"' },
  });
  const instance = bareInstance({
    ...{ instance_id: 'own__toy-1', base_commit: 'HEAD', FAIL_TO_PASS: ['t.py::test_a'] },
    ...{ image: machine.image, log_parser: 'parse_log_pytest', eval_script: TESTS },
    ...trial.instance,
  });
  return { farm, prefix, server, run, instance };
}

/** Runs attempts of a rollout on a node in this process. */
export async function rollOut(machine: Machine, trial: Trial = {}) {
  const { farm, server, run, instance } = await openTrial(machine, trial);
  const { id, attempt, results, ends } = await submitOne(farm, run, instance);
  const { runtime, threads, folder } = machine;
  const flags = { agents_dir: join(folder, 'agents'), ...trial.flags };
  const node = openNode({ farm, runtime, threads, flags });
  onTestFinished(() => node.policies[Symbol.dispose]());
  return {
    ...{ farm, node, server, id },
    attempt: () => attempt(node),
    ends,
    async result(): Promise<Result | undefined> {
      return (await results())[0];
    },
    async stored() {
      return await farm.artifacts.read((await results())[0]?.artifact ?? null);
    },
    /** Sandboxes of this node that are left, after all removals. */
    async left() {
      await node.removals.finished();
      return (await runtime.listOwned()).filter(({ owner }) => owner.rollout_id === id).length;
    },
  };
}

export const answered = (server: ScriptedPolicy): number => server.stats().answered;
