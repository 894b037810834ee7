/**
 * One worker's attempts at losing rollouts on a real runtime, for tests of code in sandboxes and of faults of infrastructure. The tree's
 * answer is wrong and no rollout fixes it, so each rollout must end with reward 0, or without a reward and with the class of its fault.
 */
import { execFileSync } from 'node:child_process';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Runtime } from '@swefarm/sandbox';
import { type Farm, type Instance, newId, type Result, type RunRecord } from '@swefarm/shared';
import {
  bareInstance,
  bareRun,
  commitTree,
  minimalImage,
  running,
  type ScriptInput,
  startScriptedPolicy,
  writeTree,
} from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import type { Node } from '../../src/node/node.ts';
import { attemptRollout } from '../../src/rollout/attempt.ts';
import type { AfterAttempt } from '../../src/rollout/context.ts';
import { startThreads, type Threads } from '../../src/threads/pool.ts';
import { openNode } from '../attempts.ts';
import { openScene } from '../maintenance/farm.ts';
import { openRuntime } from './runtimes.ts';

/** Maximum number of processes that a run may request for a sandbox (`max_pids`). */
const MOST_PIDS = 1_000;

/** Files of the image; its repository ignores the last three. */
const FILES: Record<string, string | Buffer> = {
  'answer.txt': '41\n',
  'work.sh': ':\n',
  'lib/one.txt': 'one\n',
  'lib/two.txt': 'two\n',
  '.gitignore': '_version.py\n*.cache\n/made/\n',
  '_version.py': 'version = 1\n',
  'a.cache': Buffer.from([0, 1, 2, 0xff, 0xfe, 0]),
  'made/egg.txt': 'egg\n',
};
/** The tests: the patch's code runs in their own shell, before its one test is counted. */
export const TESTS = `#!/bin/bash
set -x
cd /testbed
: '>>>>> Start Test Output'
. ./work.sh
if [ "$(cat answer.txt)" = 42 ]; then echo PASSED t.py::test_a; else echo FAILED t.py::test_a; fi
: '>>>>> End Test Output'
`;

const replaced = (path: string, from: string, to: readonly string[]): string =>
  `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n@@ -1 +1,${to.length} @@\n-${from}\n${to.map((line) => `+${line}\n`).join('')}`;
export const GOLD = replaced('answer.txt', '41', ['42']);
/** A patch whose code the tests run. */
export const patchOf = (code: string): string => replaced('work.sh', ':', code.split('\n'));

export type Machine = AsyncDisposable & { runtime: Runtime; image: string; threads: Threads; folder: string };

/** A runtime and the image of the matrix on it. @param diskBytes of a disk of its own, for rootfs; absent: the machine's */
export async function openMachine(name: string, diskBytes?: number): Promise<Machine> {
  const folder = temporaryFolder('matrix');
  await chmod(folder, 0o755);
  const tree = join(folder, 'tree');
  execFileSync('cp', ['-a', (await minimalImage()).tree, tree]);
  const work = join(tree, 'testbed');
  await writeTree(work, FILES);
  commitTree(work);
  const threads = startThreads(1);
  const scratchDir = join(folder, 'scratch');
  if (diskBytes !== undefined) {
    await mkdir(scratchDir);
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskBytes}`, 'swefarm-test', scratchDir]);
  }
  const { runtime, imageOf } = await openRuntime(name, folder);
  return {
    ...{ runtime, threads, folder, image: await imageOf(tree) },
    async [Symbol.asyncDispose]() {
      await threads[Symbol.asyncDispose]();
      await runtime[Symbol.asyncDispose]();
      if (diskBytes !== undefined) execFileSync('umount', [scratchDir]);
    },
  };
}

/** The same object, with some of its methods replaced. */
export const replacing = <T extends object>(target: T, changes: Partial<T>): T =>
  new Proxy(target, {
    get(_target, key) {
      const from = Object.hasOwn(changes, key) ? changes : target;
      const value: unknown = Reflect.get(from, key, from);
      // The function is not bound, because V8's stacks of disposables refuse bound functions.
      return typeof value === 'function' ? (...args: unknown[]) => Reflect.apply(value, from, args) : value;
    },
  });

export type RunGiven = {
  /** Commands of an agent, of each rollout; it submits after the last. */
  agents?: readonly (readonly string[])[];
  /** Instead of commands: the turns of each rollout's model, which uses tool calls. */
  turns?: ScriptInput['conversations'][number]['variants'];
  /** Given patches, of each rollout. */
  patches?: readonly string[];
  /** Seconds. */
  testsLimit?: number;
  logLimit?: number;
  instance?: Partial<Instance>;
  run?: Partial<RunRecord>;
  sandbox?: Partial<RunRecord['sandbox']>;
  faults?: ScriptInput['faults'];
  store?: Farm['artifacts']['put'];
  machine?: Partial<Machine>;
};

export type Rollouts = AsyncDisposable & {
  ids: string[];
  farm: Farm;
  node: Node;
  /** One attempt at the rollout at this index. */
  attempt(at: number): Promise<AfterAttempt>;
  resultOf(at: number): Promise<Result | null>;
  /** How each attempt ended. */
  journal(at: number): Promise<string[]>;
};

/** A run on one instance, and a worker that attempts its rollouts when it is told to. */
export async function openRollouts(machine: Machine, given: RunGiven): Promise<Rollouts> {
  await using stack = new AsyncDisposableStack();
  const { runtime, threads, image } = { ...machine, ...given.machine };
  const { farm } = await openScene(`{m-${newId()}}`);
  stack.use(farm);
  const { agents, turns, patches = [] } = given;
  const variants = turns ?? agents?.map((commands) => running(...commands));
  const policy =
    variants &&
    stack.use(
      await startScriptedPolicy({
        script: { conversations: [{ variants }], faults: given.faults ?? [] },
        tokens: false,
      }),
    );
  const bare = bareRun();
  const run = bareRun({
    group_size: variants?.length ?? patches.length,
    agent: variants
      ? {
          ...{ ...bare.agent, type: 'mini', time_limit: 90, step_timeout: 8 },
          action: turns ? 'tool' : bare.agent.action,
        }
      : { ...bare.agent, type: 'patch' },
    policy: policy
      ? ({
          urls: [policy.url],
          model: 'scripted',
          token_mode: 'text',
          require_tokens: false,
          patience: 1,
          request_timeout: 2,
        } as never)
      : null,
    evaluation: {
      ...bare.evaluation,
      timeout: given.testsLimit ?? 60,
      log_limit: given.logLimit ?? 1024 ** 2,
    },
    sandbox: { ...bare.sandbox, activate: ':', memory_bytes: 128 * 1024 ** 2, pids: 128, ...given.sandbox },
    ...given.run,
  });
  const instance = bareInstance({
    ...{ instance_id: 'own__matrix-1', base_commit: 'HEAD', FAIL_TO_PASS: ['t.py::test_a'] },
    ...{ image, patch: GOLD, log_parser: 'parse_log_pytest', eval_script: TESTS },
    ...given.instance,
  });
  const refs = patches.map((patch, at) => [`${instance.instance_id}.${at}`, patch] as const);
  await farm.runs.create(run, [instance], ...(variants ? [] : [refs]));
  const ids = await farm.groups.rollouts(run.run_id);
  const put = given.store;
  const node = openNode({
    farm: put ? replacing(farm, { artifacts: replacing(farm.artifacts, { put }) }) : farm,
    ...{ runtime, threads, flags: { worker_id: `matrix-${newId()}`, max_pids: MOST_PIDS } },
  });
  stack.defer(async () => {
    node.policies[Symbol.dispose]();
    await node.removals.finished();
  });
  const { instance_id } = instance;
  const owned = stack.move();
  return {
    ...{ ids, farm, node },
    attempt(at) {
      const id = ids[at] ?? '';
      const job = {
        ...{ rollout_id: id, run_id: run.run_id, instance_id, rollout_index: at, submitted_at: Date.now() },
        ...(variants ? {} : { patch_ref: refs[at]?.[0] }),
      };
      return node.active.during(id, (signal) => attemptRollout(job as never, node, signal));
    },
    resultOf: (at) => farm.results.get(ids[at] ?? ''),
    journal: async (at) =>
      (await farm.journal.read(ids[at] ?? '')).map(({ end }) =>
        [end?.class, end?.class === 'done' ? null : end?.cause].filter(Boolean).join(': '),
      ),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
