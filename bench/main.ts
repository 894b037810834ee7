/** Runs the benchmarks: reads the flags, runs the parts, and writes the figures with a description of the machine. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureDocker } from '@swefarm/testkit';
import { type AdmissionSize, measureAdmission, printAdmission } from './admission.ts';
import { measureBranches, printBranches } from './branch.ts';
import { type ClientSize, measureClient, printClient } from './client.ts';
import { measureController, printController } from './controller.ts';
import { COST, measureCost, printCost, QUICK_COST } from './cost.ts';
import { SOCKET } from './engine.ts';
import { measureEval, printEval } from './eval.ts';
import { type HarborSize, measureHarbor, printHarbor } from './harbor.ts';
import { describeMachine, loadAverage } from './machine.ts';
import { type MemorySize, measureMemory } from './memory.ts';
import { measureOrder, type OrderSize, printOrder } from './order.ts';
import { measurePeers, printPeers } from './peers.ts';
import { printMemory, printRollouts, printScale } from './print.ts';
import { measureRecorder, printRecorder, type RecorderSize } from './recorder.ts';
import { measureRegistry, printRegistry, type RegistrySize } from './registry.ts';
import { measureRollouts, type RolloutsSize } from './rollouts.ts';
import { measureScale, type ScaleSize } from './scale.ts';
import { measureStart, printStart } from './start.ts';
import { importSubject, prepareSubject } from './subject.ts';

const ROOT = resolve(import.meta.dirname, '..');
const PARTS = [
  ...['rollouts', 'cost', 'start', 'memory', 'eval', 'scale', 'peers', 'branch', 'admission'],
  ...['controller', 'recorder', 'order', 'client', 'harbor', 'registry'],
];

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: PARTS.join(',') },
    quick: { type: 'boolean', default: false },
    reps: { type: 'string' },
    json: { type: 'string' },
    against: { type: 'string' },
    nodes: { type: 'string', default: '16,64,256,1000' },
    predictions: { type: 'string', default: '200' },
  },
});
const parts = values.only.split(',');
const reps = values.reps === undefined ? null : Number(values.reps);
const nodes = values.nodes.split(',').map(Number);
const predictions = Number(values.predictions);
const counts = [...nodes, predictions, ...(reps === null ? [] : [reps])];
if (
  parts.some((part) => !PARTS.includes(part)) ||
  counts.some((count) => !(Number.isInteger(count) && count > 0))
) {
  process.stderr.write(
    `usage: bench.sh [--only ${PARTS.join(',')}] [--quick] [--reps N] [--json FILE] [--against CHECKOUT] [--nodes N,N] [--predictions N]\n`,
  );
  process.exit(2);
}
const { quick } = values;
const SIZES: readonly RolloutsSize[] = quick
  ? [{ parallel: 2, rollouts: 2 }]
  : [
      { parallel: 1, rollouts: 4 },
      { parallel: 4, rollouts: 12 },
      { parallel: 16, rollouts: 32 },
    ];
const MEMORY: MemorySize = quick
  ? { rollouts: 4, turns: 10, tokens: 4_000, delayMs: 300 }
  : { rollouts: 64, turns: 88, tokens: 60_000, delayMs: 800 };
const RECORDER: Omit<RecorderSize, 'reps'> = quick
  ? { agents: [1], turns: 5, bodyBytes: 100_000 }
  : { agents: [1, 64], turns: 60, bodyBytes: 100_000 };
const ORDER: OrderSize = {
  instances: quick ? 4 : 32,
  group: quick ? 4 : 16,
  steps: quick ? 2 : 50,
  farms: [
    { nodes: 16, slots: 4 },
    { nodes: 16, slots: 8 },
    { nodes: 128, slots: 1 },
    { nodes: 128, slots: 2 },
  ],
  real: { slots: 16, mean_seconds: quick ? 0.2 : 3 },
};
const ADMISSION: AdmissionSize = quick
  ? { rollouts: 8, turns: 4, tokens: 2_000, engine: { kv_tokens: 20_000, scale: 4, speed: 20 } }
  : {
      ...{ rollouts: 64, turns: 12, tokens: 4_000 },
      engine: {
        ...{ kv_tokens: 400_000, scale: 8, speed: 8, step_tokens: 8192 },
        ...{ step_ms: 8, request_ms: 0.05, prefill_token_ms: 0.1 },
      },
    };
const CONTROLLER = quick
  ? { rollouts: [16], fixed: [4, 8] }
  : { rollouts: [32, 128], fixed: [3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32] };
const CLIENT: ClientSize = quick
  ? { groups: 2, size: 4, tokens: 2_700, delay: 0.5 }
  : { groups: 32, size: 16, tokens: 60_000, delay: 60 };
const HARBOR: readonly HarborSize[] = quick
  ? [{ parallel: 2, attempts: 1 }]
  : [
      { parallel: 1, attempts: 1 },
      { parallel: 4, attempts: 2 },
      { parallel: 8, attempts: 4 },
      { parallel: 16, attempts: 8 },
    ];
const REGISTRY: readonly RegistrySize[] = quick
  ? [{ images: 3, lower_mb: 60, middle_mb: 20, own_mb: 3 }]
  : [
      { images: 10, lower_mb: 200, middle_mb: 100, own_mb: 10 },
      { images: 50, lower_mb: 900, middle_mb: 600, own_mb: 20 },
    ];
const EVAL = quick ? { each: 2, workers: 2 } : { each: Math.ceil(predictions / 4), workers: 4 };

/** Maximum number of rollouts that this machine simulates. With a thousand nodes, a quarter of the slots is filled. */
const MOST_SIMULATED = 8192;
const scaleSize = (count: number): ScaleSize => ({
  nodes: count,
  ...(quick
    ? { slots: 4, step_instances: 2, compress: 1000, fill: count * 4, watch_seconds: 1 }
    : {
        slots: 32,
        step_instances: 32,
        compress: 60,
        fill: Math.min(count * 32, MOST_SIMULATED),
        watch_seconds: 20,
      }),
});

// Exit hooks end every process that was started.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));

/** Every other part starts containers. */
const WITHOUT_ENGINE = ['controller', 'scale', 'recorder', 'order', 'client'];
const engineNeeded = parts.some((part) => !WITHOUT_ENGINE.includes(part));
await using _engine = engineNeeded ? await ensureDocker({ socketPath: SOCKET }) : null;
const machine = await describeMachine();
console.error(
  `${machine.cores} cores, ${machine.memory_gib} GiB, ${machine.os}, kernel ${machine.kernel}, engine ${machine.engine}, load ${machine.load_average}`,
);
const subject = await prepareSubject();
if (engineNeeded) await importSubject(subject);

const report: Record<string, unknown> = {
  format: 'swefarm-bench-1',
  quick,
  started_at: new Date().toISOString(),
  machine,
};
const measured = async <T>(
  part: string,
  measure: () => Promise<T>,
  print: (result: T) => string,
): Promise<void> => {
  if (!parts.includes(part)) return;
  const load_average_before = loadAverage();
  const from = performance.now();
  const result = await measure();
  const seconds = Math.round((performance.now() - from) / 100) / 10;
  report[part] = { seconds, load_average_before, load_average_after: loadAverage(), ...result };
  console.log(`\n${print(result)}\n(${seconds} s; load average ${load_average_before} to ${loadAverage()})`);
};

const rounds = reps ?? (quick ? 1 : 3);
const cost = quick ? QUICK_COST : COST;
const start = { reps: reps ?? (quick ? 1 : 5), against: values.against ?? null };
const sizes = (quick ? nodes.slice(0, 1) : nodes).map(scaleSize);
await measured('rollouts', () => measureRollouts(subject, SIZES, rounds), printRollouts);
await measured('cost', () => measureCost(subject, { ...cost, reps: reps ?? cost.reps }), printCost);
await measured('start', () => measureStart(subject, start), printStart);
await measured('memory', () => measureMemory(subject, MEMORY), printMemory);
await measured('eval', () => measureEval(EVAL, rounds), printEval);
await measured('scale', () => measureScale(sizes), printScale);
await measured('peers', () => measurePeers(subject, SIZES, rounds), printPeers);
await measured('branch', () => measureBranches(subject, quick ? [1] : [1, 8], rounds), printBranches);
await measured('admission', () => measureAdmission(subject, ADMISSION, rounds), printAdmission);
await measured('controller', async () => measureController(CONTROLLER, rounds), printController);
await measured('recorder', () => measureRecorder({ ...RECORDER, reps: rounds }), printRecorder);
await measured('order', () => measureOrder(ORDER), printOrder);
await measured('client', () => measureClient(CLIENT, rounds), printClient);
await measured('harbor', () => measureHarbor(HARBOR, reps ?? 1), printHarbor);
await measured('registry', () => measureRegistry(REGISTRY, rounds), printRegistry);

const stamp = new Date().toISOString().replace(/\..*/, '').replaceAll(':', '');
const file = resolve(values.json ?? join(ROOT, '.swefarm/bench', `${stamp}.json`));
await mkdir(dirname(file), { recursive: true });
await writeFile(file, `${JSON.stringify(report, null, 1)}\n`);
console.log(`\n${file}`);
