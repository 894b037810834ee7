/**
 * The control plane of a large farm: real queue, placement, journal, heartbeats, maintenance and commits against a real Redis of its
 * own, on nodes whose rollouts are timers. Each cost is measured separately, so that the cost of a farm with other durations can be
 * computed. A whole step runs with compressed durations; the control plane's own times are never compressed.
 */
import { sleep } from '@swefarm/shared';
import { until } from '@swefarm/testkit';
import { shareOf } from './durations.ts';
import { PATIENCE } from './fleet.ts';
import { type Books, type Load, loadBetween, plus, secondsBetween, times } from './load.ts';
import { collect, onceEach, openSimulatedFarm } from './scale/farm.ts';
import {
  type Filled,
  fillUp,
  loseNodes,
  REPORTED_TURNS,
  type Recovery,
  reportTurns,
} from './scale/phases.ts';
import { type Step, takeStep } from './scale/step.ts';
import { type WaitingPart, waitForPolicy } from './scale/waiting.ts';
import { rounded } from './statistics.ts';

export type ScaleSize = {
  nodes: number;
  slots: number;
  /** Instances of the step, each with a group of 16. */
  step_instances: number;
  /** Durations of the step are divided by this. */
  compress: number;
  /** Number of concurrent rollouts at the end: one per slot, or as many as this machine can simulate. */
  fill: number;
  /** Seconds of the measurement of the idle farm and of the full farm. */
  watch_seconds: number;
};

export type ScaleRow = ScaleSize & {
  connections: number;
  /** Per second of one idle node. `worker_us`: CPU of the node itself. */
  idle: Load & { worker_us: number };
  /** Per second of one running rollout. */
  running: Load;
  /** Per rollout: from its submit until it runs, and from its end until it is collected. */
  begun: Load;
  ended: Load;
  /** Per live turn of a running rollout. */
  turn: Load;
  /** Peak memory of Redis; memory of a running rollout, of each of its stored turns, and of its result at the end. */
  memory: { peak_bytes: number; running_bytes: number; turn_bytes: number; result_bytes: number };
  filled: Filled;
  step: Step;
  waiting: WaitingPart;
  /** Null when a tenth of the nodes is less than one node. */
  recovery: Recovery | null;
};

export type ScalePart = { rows: ScaleRow[] };

/** Share of the running rollouts that ends before nodes are killed, so that the other nodes have free slots for the lost rollouts. */
const RELEASED = 0.25;

export async function measureScale(sizes: readonly ScaleSize[]): Promise<ScalePart> {
  const rows: ScaleRow[] = [];
  for (const size of sizes) {
    logProgress(`${size.nodes} nodes of ${size.slots} slots`);
    rows.push(await measureSize(size));
  }
  return { rows };
}

/** Prints progress, because the run takes several minutes. */
const logProgress = (what: string): void => console.error(`  ${what}`);

async function measureSize(size: ScaleSize): Promise<ScaleRow> {
  await using simulated = await openSimulatedFarm(size);
  const { fleet, look } = simulated;
  const { nodes, fill: rollouts, watch_seconds } = size;
  /** Returns the load between two samples per unit of `count`, minus the cost of idle nodes and running rollouts in that time. */
  const loadOf = (from: Books, to: Books, count: number, besides: Load[] = []): Load => {
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
  const idle = { ...loadOf(alone, stillAlone, nodeSeconds), worker_us };
  const idling = times(idle, nodes);
  logProgress(`idle: ${share(idling)} of Redis, ${Math.round(idling.commands)} commands a second`);

  const step = await takeStep(simulated, size);
  logProgress(
    `a step of ${step.rollouts}: last after ${step.seconds.last} s (ideal ${step.ideal_seconds.last} s)`,
  );

  const waiting = await waitForPolicy(simulated, { ...size, idle: idling });
  logProgress(
    `${waiting.rollouts - waiting.limit} wait for their policy: ${share(waiting.waiting)} of Redis, ${Math.round(waiting.waiting.commands)} commands a second; ${waiting.step_seconds} s for ${waiting.ideal_seconds} s of work`,
  );

  const { run, ids, filled, empty, full } = await fillUp(simulated, rollouts);
  const begun = loadOf(empty, full, rollouts, [idling]);
  logProgress(`${rollouts} rollouts ran after ${filled.all_seconds} s`);

  const [runningFrom, runningTo] = await watched();
  const running = loadOf(runningFrom, runningTo, rollouts * secondsBetween(runningFrom, runningTo), [idling]);
  const runningLoad = times(running, rollouts);
  logProgress(`all run: ${share(plus(idling, runningLoad))} of Redis`);

  const [beforeTurn, afterTurn, turns] = await reportTurns(simulated);
  const turn = loadOf(beforeTurn, afterTurn, turns, [idling, runningLoad]);

  const collecting = collect(simulated.farm, run.run_id, rollouts);
  fleet.send({ order: 'release', share: RELEASED });
  const staying = ids.filter((id) => shareOf(id) >= RELEASED);
  await until(() => fleet.running() <= staying.length, PATIENCE);
  const recovery = await loseNodes(fleet, nodes);
  if (recovery)
    logProgress(
      `${recovery.rollouts} rollouts of ${recovery.nodes} lost nodes ran again after ${recovery.all_seconds} s`,
    );
  const ending = fleet.running();
  const before = await look();
  fleet.send({ order: 'release', share: 1 });
  const results = await collecting;
  const after = await look();
  onceEach(results, rollouts, recovery?.rollouts ?? 0);
  const ended = loadOf(before, after, ending, [times(idle, nodes - (recovery?.nodes ?? 0))]);
  const bytes = (from: Books, to: Books): number =>
    Math.round((to.memory_bytes - from.memory_bytes) / rollouts);
  return {
    ...size,
    connections: alone.connections,
    ...{ idle, running, begun, ended, turn },
    memory: {
      peak_bytes: after.peak_bytes,
      running_bytes: bytes(empty, full),
      turn_bytes: bytes(beforeTurn, afterTurn),
      // Redis drops a rollout's live turns a minute after its end.
      result_bytes: bytes(empty, after) - REPORTED_TURNS * bytes(beforeTurn, afterTurn),
    },
    ...{ filled, step, waiting, recovery },
  };
}

const share = (aSecond: Load): string => `${rounded(aSecond.redis_us / 10_000, 1)} %`;
