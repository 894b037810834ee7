/**
 * Other programs from PyPI beside the farm: the same image, the same twenty commands of the same scripted model, the same machine, in
 * turns. Each grades as it grades: ours in a clean container, others as they do.
 */
import { loadAverage, machineCpuSeconds } from './machine.ts';
import { nemoGym } from './peers/gym.ts';
import { miniSweAgent } from './peers/miniswe.ts';
import { ourEval, ours } from './peers/ours.ts';
import type { OpenPeer, Peer, Work } from './peers/peer.ts';
import { openScene } from './peers/scene.ts';
import { swebench } from './peers/swebench.ts';
import { table } from './print.ts';
import type { RolloutsSize } from './rollouts.ts';
import { usableRuntimes } from './sandbox.ts';
import type { Skipped } from './shell.ts';
import { median, rounded } from './statistics.ts';
import type { Subject } from './subject.ts';

export type PeerCell = {
  peer: string;
  work: Work;
  parallel: number;
  count: number;
  /** What the time contains. */
  counts: string;
  /** One sample a round. */
  per_minute: number[];
  /** Seconds of CPU of the whole machine for each of them: engine, containers and whatever else ran meanwhile. */
  cpu_seconds: number[];
  load_average: number[];
};

export type PeersPart = { reps: number; cells: PeerCell[]; skipped: Skipped[] };

export async function measurePeers(
  subject: Subject,
  sizes: readonly RolloutsSize[],
  reps: number,
): Promise<PeersPart> {
  await using stack = new AsyncDisposableStack();
  const most = Math.max(...sizes.map(({ rollouts }) => rollouts));
  const scene = stack.use(await openScene(subject, most));
  const { usable, skipped } = await usableRuntimes();
  const opening: [string, OpenPeer][] = [
    ['mini-swe-agent', () => miniSweAgent(scene)],
    ['NeMo Gym', (own) => nemoGym(scene, own)],
    ['swebench', async () => [await swebench(scene)]],
  ];
  const peers: Peer[] = [...usable.flatMap((name) => ours(scene, name, stack)), ourEval(scene)];
  for (const [what, open] of opening) {
    try {
      peers.push(...(await open(stack)));
    } catch (error) {
      skipped.push({ what, why: whyOf(error) });
    }
  }
  const cells: PeerCell[] = [];
  for (const size of sizes) cells.push(...(await measureSize(peers, size, reps, skipped)));
  return { reps, cells, skipped };
}

/** The first lines of what went wrong: a program's last output can be long. */
const whyOf = (error: unknown): string => {
  const { message, stderr } = error as Error & { stderr?: string };
  const last = stderr?.trim().split('\n').slice(-3).join(' ');
  return [message.split('\n')[0], last].filter(Boolean).join(': ').slice(0, 600);
};

async function measureSize(
  peers: readonly Peer[],
  { parallel, rollouts }: RolloutsSize,
  reps: number,
  skipped: Skipped[],
): Promise<PeerCell[]> {
  const cells = new Map<Peer, PeerCell>();
  const order = [...peers];
  for (let rep = 0; rep < reps; rep++) {
    for (const peer of order) {
      const { name, work, counts } = peer;
      if (skipped.some(({ what }) => what === keyOf(peer))) continue;
      try {
        const sample = await measureOne(peer, rollouts, parallel, `p${parallel}r${rep}`);
        const cell = cells.get(peer) ?? newCell(name, work, counts, parallel, rollouts);
        cells.set(peer, cell);
        cell.per_minute.push(sample.perMinute);
        cell.cpu_seconds.push(sample.cpuSeconds);
        cell.load_average.push(sample.load);
        // This takes long enough that the user wants to see progress.
        console.error(`  ${parallel} at once, ${name}, ${work}: ${sample.perMinute} a minute`);
      } catch (error) {
        skipped.push({ what: keyOf(peer), why: whyOf(error) });
      }
    }
    order.push(...order.splice(0, 1));
  }
  return [...cells.values()];
}

const keyOf = ({ name, work }: Peer): string => `${name}, ${work}`;

const newCell = (peer: string, work: Work, counts: string, parallel: number, count: number): PeerCell => ({
  ...{ peer, work, parallel, count, counts },
  ...{ per_minute: [], cpu_seconds: [], load_average: [] },
});

async function measureOne(peer: Peer, count: number, parallel: number, round: string) {
  await peer.prepare?.(parallel);
  const load = loadAverage();
  const before = machineCpuSeconds();
  const seconds = await peer.run(count, parallel, round);
  return {
    perMinute: rounded((60 * count) / seconds, 1),
    cpuSeconds: rounded((machineCpuSeconds() - before) / count, 2),
    load,
  };
}

/** What each kind of work is compared with: ours on the engine that the others use. */
const BESIDE: Readonly<Record<Work, string>> = {
  rollouts: 'swefarm, docker',
  graded: 'swefarm, docker',
  evaluations: 'swefarm eval, docker',
};

export function printPeers({ cells, reps, skipped }: PeersPart): string {
  const head = [
    'work',
    'at once',
    'program',
    'a minute',
    'ours/it',
    'CPU s each',
    'ours/it',
    'load',
    'time of',
  ];
  const works: Work[] = ['rollouts', 'graded', 'evaluations'];
  const ordered = works.flatMap((work) => cells.filter((cell) => cell.work === work));
  const rows = ordered.map((cell) => {
    const { work, parallel, peer, per_minute, cpu_seconds, load_average, counts } = cell;
    const own = cells.find(
      (one) => one.work === work && one.parallel === parallel && one.peer === BESIDE[work],
    );
    const ratio = (name: 'per_minute' | 'cpu_seconds'): number | string =>
      own === undefined || own === cell
        ? '-'
        : rounded(median(cell[name].map((one, at) => (own[name][at] ?? Number.NaN) / one)), 2);
    return [
      ...[WORDS[work], parallel, peer, median(per_minute), ratio('per_minute')],
      ...[
        median(cpu_seconds),
        ratio('cpu_seconds'),
        `${Math.min(...load_average)} to ${Math.max(...load_average)}`,
      ],
      counts,
    ];
  });
  return [
    `Beside other programs, one image, twenty commands, a model that answers at once (${reps} rounds); CPU is the whole machine's`,
    table([head, ...rows]),
    ...skipped.map(({ what, why }) => `not measured: ${what} (${why})`),
  ].join('\n');
}

const WORDS: Readonly<Record<Work, string>> = {
  rollouts: 'not graded',
  graded: 'graded',
  evaluations: 'gold graded',
};
