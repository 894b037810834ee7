/** A farm of processes for the recovery part: its Redis can be killed, and its policy reports which requests are open. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { newRunRecord, submit } from '@swefarm/producer';
import { type Farm, loadConfig, newId, openFarm, type RunRecord, type RuntimeName } from '@swefarm/shared';
import {
  type ScriptedPolicy,
  type Started,
  startCommand,
  startScriptedPolicy,
  until,
} from '@swefarm/testkit';
import { SOCKET } from '../engine.ts';
import { type BenchEnvironment, openEnvironment } from '../farm.ts';
import type { Subject } from '../subject.ts';

export type Scene = AsyncDisposable & {
  readonly subject: Subject;
  readonly environment: BenchEnvironment;
  readonly farm: Farm;
  /** Answers the first question at once and the second after `holdMs`. */
  readonly policy: ScriptedPolicy;
  readonly env: Readonly<Record<string, string>>;
  worker(runtime: RuntimeName, slots: number, more?: readonly string[]): Promise<SceneWorker>;
  /** One group of this many rollouts, not graded. */
  run(rollouts: number): Promise<{ run: RunRecord; ids: string[] }>;
};

export type SceneWorker = { id: string; scratch: string; started: Started };

const DEADLINE_MS = 180_000;

export async function openScene(subject: Subject, holdMs: number): Promise<Scene> {
  await using stack = new AsyncDisposableStack();
  const environment = stack.use(await openEnvironment());
  const prefix = `{bench-${newId()}}`;
  const held = { submit: true as const, delay_ms: holdMs };
  const policy = stack.use(
    await startScriptedPolicy({
      script: { conversations: [{ variants: [[{ thought: 'I look.', command: 'ls' }, held]] }] },
      tokens: false,
    }),
  );
  const flags = { redisUrl: environment.redisUrl, redisPrefix: prefix };
  const farm = stack.use(await openFarm(loadConfig('producer', { env: {}, flags }), 'producer'));
  const env = {
    SWEFARM_REDIS_URL: environment.redisUrl,
    SWEFARM_REDIS_PREFIX: prefix,
    SWEFARM_STATE_DIR: join(environment.folder, 'state'),
    SWEFARM_DOCKER_SOCKET: SOCKET,
  };
  const all = stack.move();
  return {
    ...{ subject, environment, farm, policy, env },
    async worker(runtime, slots, more = []) {
      const id = `bench-${newId()}`;
      const scratch = join(environment.folder, id);
      await mkdir(scratch);
      const own = ['--worker-id', id, '--node', id, '--scratch-dir', scratch, '--runtime', runtime];
      const args = ['run', ...own, '--concurrency', String(slots), ...more];
      const started = startCommand('swefarm-worker', args, env);
      all.defer(async () => {
        started.kill('SIGTERM');
        await started.exit;
      });
      await started.until(/"msg":"ready"/);
      return { id, scratch, started };
    },
    async run(rollouts) {
      const instances = [subject.instance];
      const settings = {
        agent: 'mini',
        model: 'scripted',
        policyUrl: [policy.url],
        activate: ':',
        eval: false,
      };
      const asked = { path: 'bench', sha256: '', instances };
      const run = newRunRecord({ dataset: asked, flags: { ...settings, groupSize: rollouts } }, false);
      await submit(farm, { record: run, instances });
      return { run, ids: await farm.groups.rollouts(run.run_id) };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Milliseconds from `from` (performance.now) until the condition holds; throws after three minutes. */
export async function timeUntil(
  holds: () => boolean | Promise<boolean>,
  from = performance.now(),
): Promise<number> {
  await until(holds, { withinMs: DEADLINE_MS, pauseMs: 10 });
  return performance.now() - from;
}

/** Waits until this many rollouts wait for their second answer. */
export async function untilHeld({ policy }: Scene, rollouts: number): Promise<void> {
  await timeUntil(() => policy.stats().in_flight === rollouts && policy.stats().answered % rollouts === 0);
}
