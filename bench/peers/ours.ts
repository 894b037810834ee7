/** The farm itself: rollouts on workers that run, and `swefarm eval` as a whole command. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RuntimeName } from '@swefarm/shared';
import { runCommand } from '@swefarm/testkit';
import { type BenchWorker, runBatch, startWorker } from '../farm.ts';
import { type Peer, secondsSince } from './peer.ts';
import { type Scene, writeLines } from './scene.ts';

/** Rollouts with a worker of this runtime for each number of seats, which is up before the clock starts. */
export function ours(scene: Scene, runtime: RuntimeName, stack: AsyncDisposableStack): Peer[] {
  const { environment, instance, policy } = scene;
  const workers = new Map<number, Promise<BenchWorker>>();
  const workerFor = (parallel: number): Promise<BenchWorker> => {
    const known = workers.get(parallel);
    if (known) return known;
    const starting = startWorker(environment, runtime, parallel).then(async (worker) => {
      stack.use(worker);
      // The first rollouts prepare the image and start threads.
      await runBatch(worker, instance, parallel, { policyUrl: [policy.url], activate: ':', eval: true });
      return worker;
    });
    workers.set(parallel, starting);
    return starting;
  };
  return [false, true].map((graded) => ({
    name: `swefarm, ${runtime}`,
    work: graded ? 'graded' : 'rollouts',
    counts: 'submit to last commit, its worker is up',
    async prepare(parallel) {
      await workerFor(parallel);
    },
    async run(count, parallel) {
      const flags = { policyUrl: [policy.url], activate: ':', eval: graded };
      const { seconds, results } = await runBatch(await workerFor(parallel), instance, count, flags);
      const wrong = results.find(({ resolved }) => resolved !== (graded ? true : null));
      if (wrong) throw new Error(`${wrong.rollout_id} should be resolved: ${JSON.stringify(wrong.facts)}`);
      return seconds;
    },
  }));
}

/** `swefarm eval` of the gold patch, with its own Redis and worker. */
export function ourEval({ folder, rows, gold }: Scene): Peer {
  return {
    name: 'swefarm eval, docker',
    work: 'evaluations',
    counts: 'the whole command',
    async run(count, parallel, round) {
      const at = join(folder, 'eval', round);
      const asked = rows(count);
      const dataset = await writeLines(join(at, 'rows.jsonl'), asked);
      const predictions = await writeLines(join(at, 'predictions.jsonl'), goldOf(asked, gold));
      const output = join(at, 'out.jsonl');
      const args = [
        ...['eval', '--dataset', dataset, '--predictions', predictions, '--run-id', round],
        ...['--runtime', 'docker', '--max-workers', String(parallel), '--output', output],
        ...['--logs-dir', join(at, 'logs'), '--report-dir', at],
      ];
      const env = { SWEFARM_STATE_DIR: join(at, 'state'), SWEFARM_SCRATCH_DIR: join(at, 'scratch') };
      const from = performance.now();
      const { code, stderr } = await runCommand('swefarm', args, env);
      const seconds = secondsSince(from);
      const lines = code === 0 ? (await readFile(output, 'utf8')).split('\n').filter(Boolean) : [];
      const resolved = lines.filter((line) => (JSON.parse(line) as { resolved?: boolean }).resolved === true);
      if (resolved.length !== count)
        throw new Error(`swefarm eval resolves ${resolved.length} of ${count}: ${stderr.slice(-2_000)}`);
      return seconds;
    },
  };
}

/** The gold patch as a prediction for each row, in the files of SWE-bench. */
export const goldOf = (rows: readonly { instance_id: string }[], patch: string): object[] =>
  rows.map(({ instance_id }) => ({ instance_id, model_name_or_path: 'bench', model_patch: patch }));
