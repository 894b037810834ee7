/** Measures Harbor and the farm alternately on the same Harbor tasks, with the solution (`oracle`) and with no work (`nop`). */
import { cp, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Dataset, readDataset } from '@swefarm/datasets';
import { newRunRecord } from '@swefarm/runs';
import { type RuntimeName, sleep } from '@swefarm/shared';
import { makeHarborBase } from '@swefarm/testkit';
import { type EngineAccount, openEngineAccount, processTimes, samplePeakMemory } from './account.ts';
import { type BenchWorker, openEnvironment, runSubmission, startWorker } from './farm.ts';
import { type Harbor, type JobGiven, openHarbor } from './harbor/program.ts';
import { skippedLines, table } from './print.ts';
import { type Skipped, usableRuntimes } from './sandbox.ts';
import { median, rounded, sum } from './statistics.ts';

/** Tasks of testkit/harbor whose trials have rewards and take no longer than their programs need. */
const TASKS = ['count-lines', 'keys-of-2025', 'prebuilt', 'two-files', 'users'];
const OWN = resolve(import.meta.dirname, '../testkit/harbor');
const AGENTS = { oracle: 'golden', nop: 'noop' } as const;
type AgentName = keyof typeof AGENTS;
/** Harbor removes containers within a trial, and the worker after the commit. This CPU is part of the rollout. */
const REMOVAL_MS = 1000;

type Who = 'harbor' | 'harbor, stop at once' | RuntimeName;

/** `attempts`: trials of each task. */
export type HarborSize = { parallel: number; attempts: number };

export type HarborCell = {
  parallel: number;
  trials: number;
  agent: AgentName;
  who: Who;
  /** One sample a round. */
  per_minute: number[];
  /** CPU seconds a trial of the program with its children, and of the engine with all containers; null: not measurable. */
  cpu_seconds: { own: number; engine: number | null }[];
  /** Largest proportional memory of the program with its children, without the engine, in MiB. */
  memory_mib: number[];
};

export type HarborPart = { reps: number; cells: HarborCell[]; skipped: Skipped[] };

type Setting = {
  harbor: Harbor;
  tasks: string;
  dataset: Dataset;
  expected: Record<string, { rewards: Record<string, number> }>;
  engine: EngineAccount | null;
};

export async function measureHarbor(sizes: readonly HarborSize[], reps: number): Promise<HarborPart> {
  await using environment = await openEnvironment();
  const { usable, skipped } = await usableRuntimes();
  const setting = await openSetting(environment.folder);
  const opened = openEngineAccount();
  using engine = typeof opened === 'string' ? null : opened;
  if (typeof opened === 'string') skipped.push({ what: 'the engine', why: opened });
  const cells: HarborCell[] = [];
  for (const { parallel, attempts } of sizes) {
    await using stack = new AsyncDisposableStack();
    const workers = new Map<Who, BenchWorker>();
    for (const name of usable) {
      const worker = stack.use(await startWorker(environment, name, parallel));
      workers.set(name, worker);
      await runFarm(setting, worker, 'oracle', 1); // builds and exports the images
    }
    const order: Who[] = ['harbor', 'harbor, stop at once', ...usable];
    const measured = (['oracle', 'nop'] as const).flatMap((agent) =>
      order.map((who): HarborCell => {
        const trials = TASKS.length * attempts;
        return { parallel, trials, agent, who, per_minute: [], cpu_seconds: [], memory_mib: [] };
      }),
    );
    for (let rep = 0; rep < reps; rep++)
      for (const cell of measured)
        await measureOne({ ...setting, engine }, cell, attempts, workers.get(cell.who));
    cells.push(...measured);
  }
  return { reps, cells, skipped };
}

async function openSetting(folder: string): Promise<Omit<Setting, 'engine'>> {
  const tasks = join(folder, 'tasks');
  for (const name of TASKS) await cp(join(OWN, 'tasks', name), join(tasks, name), { recursive: true });
  await makeHarborBase();
  const harbor = await openHarbor(resolve(folder));
  // The first trial of each task fills the build cache of the engine.
  await harbor.run({ tasks, agent: 'nop', attempts: 1, parallel: 1, stopAtOnce: true });
  const { outcomes } = JSON.parse(await readFile(join(OWN, 'expected.json'), 'utf8'));
  return { harbor, tasks, dataset: await readDataset(tasks), expected: outcomes };
}

type Ran = { seconds: number; peakMib: number; rewards: (readonly [task: string, rewards: unknown])[] };

async function measureOne(
  setting: Setting,
  cell: HarborCell,
  attempts: number,
  worker: BenchWorker | undefined,
): Promise<void> {
  const { agent, parallel, who } = cell;
  await sleep(REMOVAL_MS);
  // Harbor's process ends with its job. Its times are then among those of the benchmark's children.
  const own = (): number => {
    const times = processTimes(worker?.pid ?? process.pid);
    return worker ? times.main + times.threads + times.children : times.children;
  };
  const before = { own: own(), engine: setting.engine?.read() };
  const ran = worker
    ? await runFarm(setting, worker, agent, attempts)
    : await runHarbor(setting, { agent, attempts, parallel, stopAtOnce: who !== 'harbor' });
  requireRewards(setting, agent, ran, TASKS.length * attempts);
  await sleep(REMOVAL_MS);
  const after = { own: own(), engine: setting.engine?.read() };
  const each = (seconds: number): number => rounded(seconds / cell.trials, 2);
  const engine =
    before.engine && after.engine
      ? each(sum(Object.values(after.engine)) - sum(Object.values(before.engine)))
      : null;
  cell.per_minute.push(rounded((60 * cell.trials) / ran.seconds, 1));
  cell.cpu_seconds.push({ own: each(after.own - before.own), engine: who === 'rootfs' ? 0 : engine });
  cell.memory_mib.push(Math.round(ran.peakMib));
  console.error(`  ${parallel} at once, ${agent}, ${who}: ${cell.per_minute.at(-1)} a minute`);
}

async function runHarbor({ harbor, tasks }: Setting, given: Omit<JobGiven, 'tasks'>): Promise<Ran> {
  const { trials, ...job } = await harbor.run({ tasks, ...given });
  return { ...job, rewards: trials.map(({ task, rewards }) => [task, rewards]) };
}

/** Runs all tasks with the network that Harbor gives them by default. */
async function runFarm(
  { dataset }: Pick<Setting, 'dataset'>,
  worker: BenchWorker,
  agent: AgentName,
  attempts: number,
): Promise<Ran> {
  const flags = { agent: AGENTS[agent], groupSize: attempts, agentNetwork: 'egress' };
  const record = newRunRecord({ dataset, flags }, false);
  const { instances } = dataset;
  using memory = samplePeakMemory(worker.pid);
  const { seconds, results } = await runSubmission(
    worker,
    { record, instances },
    instances.length * attempts,
  );
  return {
    seconds,
    peakMib: memory.peakMib(),
    rewards: results.map(({ instance_id, reward_components }) => [instance_id, reward_components]),
  };
}

/** @throws Error unless each trial has Harbor's rewards of expected.json */
function requireRewards(
  { expected }: Pick<Setting, 'expected'>,
  agent: AgentName,
  { rewards }: Ran,
  count: number,
): void {
  const text = (value: unknown): string => JSON.stringify(Object.entries(value ?? {}).sort());
  if (rewards.length !== count) throw new Error(`${rewards.length} of ${count} trials have a result`);
  for (const [task, seen] of rewards) {
    const wanted = expected[`${task} ${agent}`]?.rewards;
    if (text(wanted) !== text(seen))
      throw new Error(
        `${task} with ${agent}: rewards ${JSON.stringify(seen)}, not ${JSON.stringify(wanted)}`,
      );
  }
}

export function printHarbor({ cells, reps, skipped }: HarborPart): string {
  const head = ['at once', 'agent', 'program', 'a minute', 'of harbor', 'of stop at once'];
  const rows = cells.map((cell) => {
    const own = median(cell.per_minute);
    const ratioTo = (who: Who): number | string => {
      const other = cells.find(
        (one) => one.who === who && one.parallel === cell.parallel && one.agent === cell.agent,
      );
      return other ? rounded(own / median(other.per_minute), 1) : '-';
    };
    const engine = cell.cpu_seconds.flatMap((one) => (one.engine === null ? [] : [one.engine]));
    return [
      ...[cell.parallel, cell.agent, cell.who, own, ratioTo('harbor'), ratioTo('harbor, stop at once')],
      median(cell.cpu_seconds.map((one) => one.own)),
      engine.length > 0 ? median(engine) : '-',
      median(cell.memory_mib),
    ];
  });
  return [
    `Trials of ${TASKS.length} Harbor tasks beside Harbor 0.25.0 (${reps} rounds); CPU seconds a trial, peak memory without the engine`,
    table([[...head, 'own CPU s', 'engine CPU s', 'MiB'], ...rows]),
    ...skippedLines(skipped),
  ].join('\n');
}
