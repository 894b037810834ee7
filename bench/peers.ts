/** Measures the farm and mini-swe-agent alternately, with the same image, commands, scripted model and machine. */
import { runSolved, startWarm } from './farm.ts';
import { machineCpuSeconds } from './machine.ts';
import { openMiniSweAgent } from './peers/miniswe.ts';
import { openScene } from './peers/scene.ts';
import { skippedLines, table } from './print.ts';
import type { RolloutsSize } from './rollouts.ts';
import { type Skipped, usableRuntimes } from './sandbox.ts';
import { median, rounded } from './statistics.ts';
import type { Subject } from './subject.ts';

/** One side of the comparison. `run` returns the seconds for `count` rollouts, `parallel` at a time, or throws unless all are right. */
type Peer = {
  name: string;
  graded: boolean;
  run(count: number, parallel: number, round: string): Promise<number>;
};

export type PeerCell = RolloutsSize & {
  peer: string;
  graded: boolean;
  /** One sample a round. */
  per_minute: number[];
  /** CPU seconds of the whole machine for each rollout. */
  cpu_seconds: number[];
};

export type PeersPart = { reps: number; cells: PeerCell[]; skipped: Skipped[] };

const OURS = 'swefarm, docker';

export async function measurePeers(
  subject: Subject,
  sizes: readonly RolloutsSize[],
  reps: number,
): Promise<PeersPart> {
  await using stack = new AsyncDisposableStack();
  const scene = stack.use(await openScene(subject, Math.max(...sizes.map(({ rollouts }) => rollouts))));
  const { usable, skipped } = await usableRuntimes();
  const mini = await openMiniSweAgent(scene);
  const cells: PeerCell[] = [];
  for (const size of sizes) {
    await using workers = new AsyncDisposableStack();
    const peers: Peer[] = [...mini];
    const { environment, instance, policy } = scene;
    for (const [name, worker] of await startWarm(environment, usable, size.parallel, scene, workers))
      for (const graded of [false, true]) {
        const run = async (count: number): Promise<number> =>
          (await runSolved(worker, instance, count, { policy, graded })).seconds;
        peers.push({ name: `swefarm, ${name}`, graded, run });
      }
    const measured = peers.map(({ name, graded }): PeerCell => {
      return { ...size, peer: name, graded, per_minute: [], cpu_seconds: [] };
    });
    for (let rep = 0; rep < reps; rep++)
      for (const [at, peer] of peers.entries()) {
        try {
          await measureOne(peer, measured[at] as PeerCell, rep);
        } catch (error) {
          const what = `${peer.name}, ${size.parallel} at once, round ${rep + 1}`;
          skipped.push({ what, why: (error as Error).message.slice(0, 600) });
        }
      }
    cells.push(...measured.filter(({ per_minute }) => per_minute.length > 0));
  }
  return { reps, cells, skipped };
}

async function measureOne({ run }: Peer, cell: PeerCell, rep: number): Promise<void> {
  const { peer, graded, parallel, rollouts } = cell;
  const before = machineCpuSeconds();
  const seconds = await run(rollouts, parallel, `p${parallel}r${rep}`);
  cell.per_minute.push(rounded((60 * rollouts) / seconds, 1));
  cell.cpu_seconds.push(rounded((machineCpuSeconds() - before) / rollouts, 2));
  console.error(
    `  ${parallel} at once, ${peer}, ${graded ? 'graded' : 'not graded'}: ${cell.per_minute.at(-1)} a minute`,
  );
}

export function printPeers({ cells, reps, skipped }: PeersPart): string {
  const head = ['at once', 'graded', 'program', 'a minute', 'ours on docker/it', 'CPU s each'];
  const rows = cells.map((cell) => {
    const own = cells.find(
      ({ peer, parallel, graded }) =>
        peer === OURS && parallel === cell.parallel && graded === cell.graded && cell.peer !== OURS,
    );
    return [
      ...[cell.parallel, cell.graded ? 'yes' : 'no', cell.peer, median(cell.per_minute)],
      ...[own ? rounded(median(own.per_minute) / median(cell.per_minute), 1) : '-', median(cell.cpu_seconds)],
    ];
  });
  return [
    `Rollouts of twenty commands beside mini-swe-agent (${reps} rounds); CPU is that of the whole machine`,
    table([head, ...rows]),
    ...skippedLines(skipped),
  ].join('\n');
}
