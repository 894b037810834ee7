/** The benchmarks: parts, flags, and one file of figures with the machine they belong to. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureDocker } from '@swefarm/testkit';
import { measureClaim, printClaim } from './claim.ts';
import { COST, measureCost, printCost, QUICK_COST } from './cost.ts';
import { SOCKET } from './engine.ts';
import { EVAL_IDS, type EvalSize, measureEval, printEval } from './eval.ts';
import { type CorpusSize, measureCorpus, printCorpus } from './evaluations.ts';
import { measureExport, printExport } from './export.ts';
import { gatewaySize, measureGateway } from './gateway.ts';
import { describeMachine, loadAverage } from './machine.ts';
import { type MemorySize, measureMemory } from './memory.ts';
import { measureMetrics, printMetrics } from './metrics.ts';
import { measurePage, printPage } from './page.ts';
import { measurePeers, printPeers } from './peers.ts';
import { printGateway, printMemory, printRollouts, printScale, printShell } from './print.ts';
import { measureProcesses, printProcesses } from './processes.ts';
import { measureRecovery, printRecovery } from './recovery.ts';
import { measureRollouts, type RolloutsSize } from './rollouts.ts';
import { measureScale, type ScaleSize } from './scale.ts';
import { measureShell } from './shell.ts';
import { measureStart, printStart } from './start.ts';
import { importSubject, prepareSubject } from './subject.ts';

const ROOT = resolve(import.meta.dirname, '..');
const PARTS = [
  'shell',
  'rollouts',
  'memory',
  'cost',
  'eval',
  'gateway',
  'metrics',
  'page',
  'recovery',
  'scale',
  'export',
  'start',
  'claim',
  'processes',
  'peers',
] as const;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    reps: { type: 'string' },
    json: { type: 'string' },
    against: { type: 'string' },
    calls: { type: 'string', default: '64' },
    turns: { type: 'string', default: '20' },
    predictions: { type: 'string', default: '200' },
    formats: { type: 'string' },
    nodes: { type: 'string', default: '16,64,256,1000' },
  },
});
const parts = (values.only ?? PARTS.join(',')).split(',');
const unknown = parts.filter((part) => !PARTS.some((known) => known === part));
const reps = values.reps === undefined ? null : Number(values.reps);
const nodes = values.nodes.split(',').map(Number);
const predictions = Number(values.predictions);
const counts = [...nodes, predictions, ...(reps === null ? [] : [reps])];
if (unknown.length > 0 || counts.some((count) => !(Number.isInteger(count) && count > 0))) {
  process.stderr.write(
    'usage: bench.sh [--only shell,rollouts,memory,cost,eval,gateway,metrics,page,recovery,scale,export,start,claim,processes,peers] [--quick] [--reps N] [--json FILE] [--against CHECKOUT] [--calls N --turns N] [--nodes N,N] [--predictions N] [--formats atif,tokens]\n',
  );
  process.exit(2);
}
const { quick } = values;
const SIZES: readonly RolloutsSize[] = [
  { parallel: 1, rollouts: 4 },
  { parallel: 4, rollouts: 12 },
  { parallel: 16, rollouts: 32 },
];
const QUICK_SIZES: readonly RolloutsSize[] = [{ parallel: 2, rollouts: 2 }];

const EVAL_SIZES: readonly EvalSize[] = [1, 4].map((workers) => ({ workers, ids: EVAL_IDS }));
const QUICK_EVAL: readonly EvalSize[] = [{ workers: 1, ids: EVAL_IDS.slice(0, 1) }];

const CORPUS: CorpusSize = { each: Math.ceil(predictions / 4), workers: 4 };
const QUICK_CORPUS: CorpusSize = { each: 2, workers: 2 };

/** With a thousand nodes only a quarter of the slots is filled: this machine has to simulate their rollouts. */
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

const LONG: MemorySize = { rollouts: 64, turns: 88, tokens: 60_000, delayMs: 800 };
const SHORT: MemorySize = { rollouts: 4, turns: 10, tokens: 4_000, delayMs: 300 };
// Exit hooks end every process that was started.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));

/** All other parts start containers. */
const WITHOUT_ENGINE = ['export', 'gateway', 'page', 'scale'];
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

await measured('shell', () => measureShell(subject, reps ?? (quick ? 2 : 10)), printShell);
await measured(
  'rollouts',
  () => measureRollouts(subject, quick ? QUICK_SIZES : SIZES, reps ?? (quick ? 1 : 3)),
  printRollouts,
);

await measured('memory', () => measureMemory(subject, quick ? SHORT : LONG), printMemory);

const cost = quick ? QUICK_COST : COST;
await measured('cost', () => measureCost(subject, { ...cost, reps: reps ?? cost.reps }), printCost);

await measured(
  'eval',
  async () => {
    const rounds = reps ?? (quick ? 1 : 3);
    const corpus = await measureCorpus(quick ? QUICK_CORPUS : CORPUS, rounds);
    return { ...(await measureEval(quick ? QUICK_EVAL : EVAL_SIZES, rounds)), corpus };
  },
  (part) => `${printCorpus(part.corpus)}\n\n${printEval(part)}`,
);

await measured(
  'gateway',
  () => measureGateway(gatewaySize(Number(values.calls), Number(values.turns))),
  printGateway,
);

await measured(
  'metrics',
  () => measureMetrics(subject, { rollouts: quick ? 2 : 8, repeats: quick ? 200 : 2000 }),
  printMetrics,
);
const scaled = quick ? nodes.slice(0, 1) : nodes;
await measured('scale', () => measureScale(scaled.map(scaleSize), quick), printScale);
await measured('page', () => measurePage(quick ? 25 : 625, reps ?? (quick ? 2 : 10)), printPage);
await measured('recovery', () => measureRecovery(subject, reps ?? (quick ? 1 : 8)), printRecovery);

// As many turns as 200,000 in 5,000 trajectories.
await measured(
  'export',
  () => measureExport({ trajectories: quick ? 50 : 5000, turns: 40 }, reps ?? 1, values.formats?.split(',')),
  printExport,
);

await measured(
  'start',
  () => measureStart(subject, { reps: reps ?? (quick ? 1 : 5), against: values.against ?? null }),
  printStart,
);

await measured('claim', () => measureClaim(subject, reps ?? (quick ? 3 : 20)), printClaim);

await measured('processes', () => measureProcesses(subject, reps ?? (quick ? 1 : 8)), printProcesses);
const PEER_SIZES: readonly RolloutsSize[] = [
  { parallel: 1, rollouts: 3 },
  { parallel: 4, rollouts: 8 },
  { parallel: 16, rollouts: 32 },
];
await measured(
  'peers',
  () => measurePeers(subject, quick ? QUICK_SIZES : PEER_SIZES, reps ?? (quick ? 1 : 3)),
  printPeers,
);

const stamp = new Date().toISOString().replace(/\..*/, '').replaceAll(':', '');
const file = resolve(values.json ?? join(ROOT, '.swefarm/bench', `${stamp}.json`));
await mkdir(dirname(file), { recursive: true });
await writeFile(file, `${JSON.stringify(report, null, 1)}\n`);
console.log(`\n${file}`);
