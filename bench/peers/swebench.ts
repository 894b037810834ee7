/** swebench's own `run_evaluation` from PyPI, as a whole command: of the gold patch, or of what another program predicted. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureHarnesses, runHarness } from '../harness.ts';
import { goldOf } from './ours.ts';
import { type Peer, secondsSince } from './peer.ts';
import { NAMESPACE, type Row, type Scene, writeLines } from './scene.ts';

export async function swebench({ folder, rows, gold }: Scene): Promise<Peer> {
  const evaluate = await openEvaluation();
  return {
    name: 'swebench 4.1.0',
    work: 'evaluations',
    counts: 'the whole command',
    async run(count, parallel, round) {
      const at = join(folder, 'swebench', round);
      const asked = rows(count);
      const predictions = await writeLines(join(at, 'predictions.jsonl'), goldOf(asked, gold));
      return await evaluate({ at, rows: asked, predictions, parallel, round });
    },
  };
}

type Evaluation = { at: string; rows: readonly Row[]; predictions: string; parallel: number; round: string };

/** Seconds of `run_evaluation` over the predictions. It throws unless all are resolved. */
export async function openEvaluation(): Promise<(evaluation: Evaluation) => Promise<number>> {
  const python = await ensureHarnesses();
  return async ({ at, rows, predictions, parallel, round }) => {
    const dataset = await writeLines(join(at, 'rows.jsonl'), rows);
    const main = {
      ...{ dataset_name: dataset, split: 'test', instance_ids: [], predictions_path: predictions },
      ...{ max_workers: parallel, force_rebuild: false, cache_level: 'instance', clean: false },
      ...{ open_file_limit: 4096, run_id: round, timeout: 1800, namespace: NAMESPACE },
      ...{ rewrite_reports: false, modal: false },
    };
    const from = performance.now();
    // Its own tables know these rows: none are to be entered.
    await runHarness(python, 'swebench', main, '/dev/null', at);
    const seconds = secondsSince(from);
    const summary = (await readdir(at)).find((name) => name.endsWith(`.${round}.json`));
    const text = summary === undefined ? '{}' : await readFile(join(at, summary), 'utf8');
    const { resolved_instances } = JSON.parse(text) as { resolved_instances?: number };
    if (resolved_instances !== rows.length)
      throw new Error(`swebench resolves ${resolved_instances} of ${rows.length}; its logs: ${at}`);
    return seconds;
  };
}
