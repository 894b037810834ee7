/**
 * The control plane of a large farm: real queue, placement, journal, heartbeats, keeper and commits against a real Redis of its
 * own, on nodes whose rollouts are timers. What each thing costs is measured apart from the others, so that what a farm with other
 * durations costs can be reckoned; durations are compressed where a whole step is shown, the control plane's own times never.
 */
import { newRunRecord, submit } from '@swefarm/producer';
import {
  type Farm,
  Instance,
  loadConfig,
  newId,
  openFarm,
  type Result,
  type RunRecord,
  sleep,
} from '@swefarm/shared';
import { startRedis, until } from '@swefarm/testkit';
import { secondsOf, shareOf } from './durations.ts';
import { type Fleet, PATIENCE, startFleet } from './fleet.ts';
import {
  type Books,
  dearest,
  type Load,
  loadBetween,
  openBooks,
  plus,
  secondsBetween,
  times,
} from './load.ts';
import { percentile, rounded } from './statistics.ts';

export type ScaleSize = {
  nodes: number;
  slots: number;
  /** Instances of the step, each with a group of 16. */
  step_instances: number;
  /** Durations of the step are divided by this. */
  compress: number;
  /** How many rollouts run at once in the end: the slots of all, or as many as this machine can simulate. */
  fill: number;
  /** How long the idle farm and the full one are watched. */
  watch_seconds: number;
};

export type Times = { p50: number; p95: number; p99: number; last: number };

export type Step = {
  rollouts: number;
  images: number;
  pulls: number;
  /** From the submit to the commit of so many of them. */
  seconds: Times;
  /** The same durations with no queue, no pull and a slot for each at once. */
  ideal_seconds: Times;
};

type Filled = {
  submit_seconds: number;
  /** From the beginning of the submit until a half, 99 of 100 and all of the rollouts ran. */
  half_seconds: number;
  most_seconds: number;
  all_seconds: number;
  images: number;
  pulls: number;
};

type Recovery = {
  nodes: number;
  rollouts: number;
  first_seconds: number;
  half_seconds: number;
  all_seconds: number;
};

export type ScaleRow = ScaleSize & {
  connections: number;
  /** For one node and one second of nothing to do. `worker_us`: CPU of the node itself. */
  idle: Load & { worker_us: number };
  /** For one second of one rollout that runs. */
  held: Load;
  /** For one rollout: from its submit until it runs, and from its end until it is collected. */
  begun: Load;
  ended: Load;
  /** For one turn of a running rollout, which somebody could watch. */
  turn: Load;
  /** Redis's peak; what a running rollout takes of it, each turn that is kept of it, and its result when all is over. */
  memory: { peak_bytes: number; running_bytes: number; turn_bytes: number; result_bytes: number };
  filled: Filled;
  step: Step;
  /** Of another farm, whose workers run whatever they claim. */
  unplaced: Step;
  /** Null when the tenth part of the nodes is none. */
  recovery: Recovery | null;
  /** By phase, the commands that took most of Redis's time. */
  dearest: Record<string, ReturnType<typeof dearest>>;
};

export type ScalePart = { rows: ScaleRow[] };

const GROUP = 16;
/** Of what runs, so much ends before nodes are lost: then the others have room for what they had. */
const RELEASED = 0.25;
/** As a training run's policy, which workers share by what the others have bound. */
const POLICY = [1, 2, 3, 4].map((port) => `http://127.0.0.1:${port}/v1`);
/** What a worker knows of the others is this old at most. */
const ACQUAINTED_MS = 2_000;
/** Each rollout tells this many turns; the last is measured, as the first one carries the prompt too. */
const TOLD = 2;
/** All tell at once; this long without a word means that all have told. */
const TELLING_MS = 500;

/** `hurried`: what should be measured apart goes on at once. */
export async function measureScale(sizes: readonly ScaleSize[], hurried: boolean): Promise<ScalePart> {
  const rows: ScaleRow[] = [];
  for (const size of sizes) {
    say(`${size.nodes} nodes of ${size.slots} slots`);
    const unplaced = measureUnplaced(size);
    if (!hurried) await unplaced;
    const [row, step] = await Promise.all([measurePlaced(size), unplaced]);
    rows.push({ ...row, unplaced: step });
  }
  return { rows };
}

/** A run of several minutes: one wants to see it move. */
const say = (what: string): void => console.error(`  ${what}`);

type Ground = AsyncDisposable & { farm: Farm; fleet: Fleet; look(): Promise<Books> };

/** A Redis, and nodes that serve its one farm. */
async function openGround({ nodes, slots }: ScaleSize, placement: 'auto' | 'off'): Promise<Ground> {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis());
  const flags = { redisUrl: redis.url, redisPrefix: 'scale' };
  const farm = stack.use(await openFarm(loadConfig('producer', { env: {}, flags }), 'producer'));
  const fleet = stack.use(await startFleet(nodes, { ...flags, slots, placement }));
  await until(async () => (await farm.registry.list()).length === nodes, PATIENCE);
  await sleep(ACQUAINTED_MS);
  const look = openBooks(farm);
  const all = stack.move();
  return { farm, fleet, look, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

async function measurePlaced(size: ScaleSize): Promise<Omit<ScaleRow, 'unplaced'>> {
  await using ground = await openGround(size, 'auto');
  const { fleet, look } = ground;
  const { nodes, fill: rollouts, watch_seconds } = size;
  const phases: ScaleRow['dearest'] = {};
  /** The load between two looks for each of `count`, less what idle nodes and running rollouts cost in that time. */
  const loadOf = (phase: string, from: Books, to: Books, count: number, besides: Load[] = []): Load => {
    phases[phase] = dearest(from, to);
    const always = besides.map((load) => times(load, secondsBetween(from, to)));
    return loadBetween(from, to, count, plus(...always));
  };
  const watched = async (): Promise<[from: Books, to: Books]> => {
    const from = await look();
    await sleep(1000 * watch_seconds);
    return [from, await look()];
  };

  const cpu = fleet.cpuMs();
  const [alone, stillAlone] = await watched();
  const nodeSeconds = nodes * secondsBetween(alone, stillAlone);
  const worker_us = rounded((1000 * (fleet.cpuMs() - cpu)) / nodeSeconds, 1);
  const idle = { ...loadOf('idle', alone, stillAlone, nodeSeconds), worker_us };
  const idling = times(idle, nodes);
  say(`idle: ${share(idling)} of Redis, ${Math.round(idling.commands)} commands a second`);

  const step = await takeStep(ground, size);
  say(`a step of ${step.rollouts}: last after ${step.seconds.last} s (ideal ${step.ideal_seconds.last} s)`);

  const { run, ids, filled, empty, full } = await fillUp(ground, rollouts);
  const begun = loadOf('begun', empty, full, rollouts, [idling]);
  say(`${rollouts} rollouts ran after ${filled.all_seconds} s`);

  const [held0, held1] = await watched();
  const held = loadOf('held', held0, held1, rollouts * secondsBetween(held0, held1), [idling]);
  const holding = times(held, rollouts);
  say(`all run: ${share(plus(idling, holding))} of Redis`);

  const [silent, told, turns] = await tellTurns(ground);
  const turn = loadOf('turn', silent, told, turns, [idling, holding]);

  const collecting = collect(ground.farm, run.run_id, rollouts);
  fleet.tell({ order: 'release', share: RELEASED });
  const staying = ids.filter((id) => shareOf(id) >= RELEASED);
  await until(() => fleet.running() <= staying.length, PATIENCE);
  const recovery = await loseNodes(fleet, nodes);
  if (recovery)
    say(
      `${recovery.rollouts} rollouts of ${recovery.nodes} lost nodes ran again after ${recovery.all_seconds} s`,
    );
  const running = fleet.running();
  const before = await look();
  fleet.tell({ order: 'release', share: 1 });
  const results = await collecting;
  const after = await look();
  onceEach(results, rollouts, recovery?.rollouts ?? 0);
  const ended = loadOf('ended', before, after, running, [times(idle, nodes - (recovery?.nodes ?? 0))]);
  const bytes = (from: Books, to: Books): number =>
    Math.round((to.memory_bytes - from.memory_bytes) / rollouts);
  return {
    ...size,
    connections: alone.connections,
    ...{ idle, held, begun, ended, turn },
    memory: {
      peak_bytes: after.peak_bytes,
      running_bytes: bytes(empty, full),
      turn_bytes: bytes(silent, told),
      // The turns that it told lapse a minute after its end.
      result_bytes: bytes(empty, after) - TOLD * bytes(silent, told),
    },
    ...{ filled, step, recovery },
    dearest: phases,
  };
}

const share = (aSecond: Load): string => `${rounded(aSecond.redis_us / 10_000, 1)} %`;

async function measureUnplaced(size: ScaleSize): Promise<Step> {
  await using ground = await openGround(size, 'off');
  const step = await takeStep(ground, size);
  say(`a step of ${step.rollouts} without placement: ${step.pulls} pulls of ${step.images} images`);
  return step;
}

/** A training step on nodes that have none of its images. */
async function takeStep({ farm, fleet }: Ground, size: ScaleSize): Promise<Step> {
  const instances = instancesOf('step', size.step_instances);
  const record = recordOf(instances);
  const rollouts = instances.length * GROUP;
  fleet.tell({ order: 'time', run_id: record.run_id, compress: size.compress });
  const from = Date.now();
  const { rollouts: ids } = await submit(farm, { record, instances });
  const results = await collect(farm, record.run_id, rollouts);
  onceEach(results, rollouts, 0);
  return {
    rollouts,
    images: instances.length,
    pulls: fleet.pulled.length,
    seconds: timesOf(results.map(({ at }) => (at - from) / 1000)),
    ideal_seconds: timesOf(ids.map((id) => secondsOf(id) / size.compress)),
  };
}

const timesOf = (seconds: readonly number[]): Times => {
  const at = (percent: number): number => rounded(percentile(seconds, percent), 1);
  return { p50: at(50), p95: at(95), p99: at(99), last: at(100) };
};

async function fillUp({ farm, fleet, look }: Ground, rollouts: number) {
  const instances = instancesOf('fill', Math.ceil(rollouts / GROUP));
  const run = recordOf(instances);
  const pulledBefore = fleet.pulled.length;
  const empty = await look();
  const from = performance.now();
  const since = (): number => rounded((performance.now() - from) / 1000, 1);
  const reached = async (part: number): Promise<number> => {
    await until(() => fleet.running() >= part * rollouts, PATIENCE);
    return since();
  };
  const [[submit_seconds, ids], half_seconds, most_seconds, all_seconds] = await Promise.all([
    submit(farm, { record: run, instances }).then((done) => [since(), done.rollouts] as const),
    reached(0.5),
    reached(0.99),
    reached(1),
  ] as const);
  const full = await look();
  const filled: Filled = {
    ...{ submit_seconds, half_seconds, most_seconds, all_seconds },
    ...{ images: instances.length, pulls: fleet.pulled.length - pulledBefore },
  };
  return { run, ids, filled, empty, full };
}

async function tellTurns({ fleet, look }: Ground): Promise<[silent: Books, told: Books, count: number]> {
  const adds = ({ by_command }: Books): number => by_command.xadd?.calls ?? 0;
  const once = async (): Promise<[Books, Books, number]> => {
    const silent = await look();
    fleet.tell({ order: 'turn' });
    let [before, told] = [silent, await look()];
    // Until nobody has more to tell: one that changes its node just then tells nothing.
    while (adds(told) > adds(before) || adds(told) === adds(silent)) {
      await sleep(TELLING_MS);
      [before, told] = [told, await look()];
    }
    return [silent, told, adds(told) - adds(silent)];
  };
  let last = await once();
  for (let turn = 1; turn < TOLD; turn++) last = await once();
  return last;
}

async function loseNodes(fleet: Fleet, nodes: number): Promise<Recovery | null> {
  const lost = Math.floor(nodes / 10);
  if (lost === 0) return null;
  const rollouts = fleet.lose();
  const seconds = (await fleet.recovered(rollouts)).map((ms) => rounded(ms / 1000, 1));
  const at = (percent: number): number => percentile(seconds, percent);
  return {
    ...{ nodes: lost, rollouts: rollouts.length },
    ...{ first_seconds: at(0), half_seconds: at(50), all_seconds: at(100) },
  };
}

type Collected = {
  result: Result /** Of the commit, in milliseconds since the epoch by Redis's clock. */;
  at: number;
};

/** As the producer's collector reads them, until there are so many. */
async function collect(farm: Farm, runId: string, count: number): Promise<Collected[]> {
  const results: Collected[] = [];
  for (let from = '0'; results.length < count; ) {
    const batch = await farm.results.read(runId, from, { blockMs: 60_000 });
    from = batch.last_id;
    for (const { stream_id, result } of batch.results)
      results.push({ result, at: Number(stream_id.split('-')[0]) });
  }
  return results;
}

/** A farm that loses a result, counts one twice or gives one up is not worth measuring. */
function onceEach(results: readonly Collected[], rollouts: number, lost: number): void {
  const ids = new Set(results.map(({ result }) => result.rollout_id));
  const judged = results.filter(({ result }) => result.outcome === 'judged').length;
  const again = results.filter(({ result }) => result.attempt > 1).length;
  if (ids.size === rollouts && results.length === rollouts && judged === rollouts && again >= lost) return;
  throw new Error(
    `${results.length} results of ${ids.size} rollouts, ${judged} judged and ${again} by a second attempt; ` +
      `expected ${rollouts}, ${rollouts}, ${rollouts} and at least ${lost}`,
  );
}

const WORDS = 'the parser drops an empty list when its first element is a mapping with no keys of its own';

function instancesOf(name: string, count: number): Instance[] {
  return Array.from({ length: count }, (_, at) =>
    Instance.parse({
      instance_id: `bench__${name}-${at}`,
      repo: 'bench/scale',
      base_commit: 'f00',
      problem_statement: WORDS.repeat(20),
      patch: `${WORDS}\n`.repeat(20),
      test_patch: `${WORDS}\n`.repeat(30),
      FAIL_TO_PASS: ['tests/test_parser.py::test_empty'],
      PASS_TO_PASS: Array.from({ length: 200 }, (_, test) => `tests/test_parser.py::test_${at}_${test}`),
      family: 'custom',
      image: `bench/${name}:${at}`,
    }),
  );
}

function recordOf(instances: Instance[]): RunRecord {
  const dataset = { path: 'bench', sha256: newId(), instances };
  const flags = { agent: 'mini', model: 'simulated', groupSize: GROUP, policyUrl: POLICY };
  return newRunRecord({ dataset, flags }, false);
}
