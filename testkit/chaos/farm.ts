/** The farm that the faults hit: Redis, an engine, a policy behind a fault proxy, workers, a gateway and a producer. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Farm, freePort, loadConfig, openFarm } from '@swefarm/shared';
import { type FaultProxy, startFaultProxy } from '../src/faultproxy.ts';
import { importTree } from '../src/images/import.ts';
import { prepareSubject } from '../src/images/subject.ts';
import { words } from '../src/launchers/commands.ts';
import { writeLines } from '../src/lines.ts';
import { type ScriptedPolicy, startScriptedPolicy } from '../src/policy/server.ts';
import { type Engine, startEngine } from './engine.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { aloneRedis, type ChaosRedis, ledRedis } from './redis.ts';
import { mountScratch, type SmallScratch } from './scratch.ts';
import { ACTS, CALLED, chaosScript, SANDBOX } from './script.ts';
import { createWorkerSlot, type WorkerSlot } from './workers.ts';

export type ChaosFarm = AsyncDisposable & {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly redis: ChaosRedis;
  readonly engine: Engine;
  readonly policy: ScriptedPolicy;
  /** Between the workers and the policy. */
  readonly proxy: FaultProxy;
  readonly workers: readonly WorkerSlot[];
  /** Small file system for the scratch folder of the worker at {@link SMALL_WORKER}. */
  readonly small: SmallScratch;
  readonly gateway: Gateway;
  /** The farm as the test reads it. */
  readonly view: Farm;
  /** Flags of the run that the producer submits, and its rows as they are posted. */
  readonly runFlags: readonly string[];
  readonly rows: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
};

export type FarmSize = {
  groups: number;
  groupSize: number;
  workers: number;
  concurrency: number;
  /** Whether `swefarm redis` leads Redis, with a standby. */
  led: boolean;
  policyDelayMs: number;
};

/** Starts everything and waits until the workers are ready. */
export async function startChaosFarm(size: FarmSize): Promise<ChaosFarm> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'farm-'));
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 500 }));
  const redisDir = join(folder, 'redis');
  const redis = stack.use(await (size.led ? ledRedis(redisDir) : aloneRedis(redisDir)));
  const engine = stack.use(await startEngine(folder));
  const subject = await prepareSubject();
  await importTree(engine.socketPath, subject.tree, subject.image);
  const policy = stack.use(
    await startScriptedPolicy({ script: chaosScript(size.policyDelayMs), version: 'weights-1' }),
  );
  const proxy = stack.use(await startFaultProxy({ target: policy.url }));
  const small = stack.use(await mountScratch(join(folder, 'small')));

  const asked = Array.from({ length: size.groups }, (_, at) => `chaos__asked-${at + 1}`);
  const rows = new Map(
    [...asked, ...CALLED.keys()].map((id) => [id, { ...subject.instance, instance_id: id }] as const),
  );
  const dataset = await writeLines(
    join(folder, 'dataset.jsonl'),
    asked.map((id) => rows.get(id)),
  );
  const env = {
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_DOCKER_SOCKET: engine.socketPath,
    SWEFARM_LOG_LEVEL: 'info',
  };
  await mkdir(join(folder, 'scratch'), { recursive: true });
  const settings = words`--agent mini --policy-url ${proxy.url} --model scripted
    --memory ${SANDBOX.memory} --pids ${SANDBOX.pids} --activate :
    --token-mode token-in --require-tokens`;

  const workers = Array.from({ length: size.workers }, (_, at) => {
    const scratch = at === SMALL_WORKER ? small.path : join(folder, 'scratch', `w${at}`);
    const runtime = at % 3 === 0 ? 'docker' : 'rootfs';
    const worker = createWorkerSlot(`w${at}`, runtime, size.concurrency, {
      ...env,
      SWEFARM_SCRATCH_DIR: scratch,
    });
    stack.defer(() => worker.kill());
    worker.start();
    return worker;
  });
  const gateway = startGateway(await freePort(), settings, env);
  stack.defer(() => gateway.kill());
  await Promise.all([gateway.ready(), ...workers.map((worker) => worker.ready())]);
  const config = loadConfig('producer', { env: {}, flags: { redisUrl: redis.url } });
  const view = stack.use(await openFarm(config, 'producer'));
  const all = stack.move();
  return {
    ...{ folder, env, redis, engine, policy, proxy, workers, small, gateway, view, rows },
    runFlags: ['--dataset', dataset, '--group-size', String(size.groupSize), ...settings],
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Position of the worker whose scratch folder is small. */
export const SMALL_WORKER = 1;

/** Returns the size of a group: at least one rotation of the acts. */
export const groupSizeFor = (rollouts: number, groups: number): number =>
  Math.max(ACTS.length, Math.ceil(rollouts / groups));
