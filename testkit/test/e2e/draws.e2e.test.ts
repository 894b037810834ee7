/** Tests a run that draws its groups, with the real commands: killed in the middle and resumed, it has the same draws. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { poll } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { readLines, writeLines } from '../../src/lines.ts';
import { type Line, openScene } from './scene.ts';
import { EXAMPLE_ID, withoutInstall } from './scripts.ts';

const ROWS = 6;
type Row = { instance_id: string; patch: string };

/** Copies the example under six ids. Of even ids one rollout in two gets the fix, of odd ids none. */
async function dataset(path: string) {
  const [example] = await readLines<Row>(await withoutInstall(path));
  if (!example) throw new Error('no example');
  const rows = Array.from({ length: ROWS }, (_, at) => ({ ...example, instance_id: `${EXAMPLE_ID}${at}` }));
  const patches = rows.flatMap(({ instance_id, patch }, at) => [
    { instance_id, model_patch: at % 2 === 0 ? patch : '' },
    { instance_id, model_patch: '' },
  ]);
  const folder = path.replace(/[^/]*$/, '');
  return {
    rows: await writeLines(join(folder, 'drawn.jsonl'), rows),
    patches: await writeLines(join(folder, 'patches.jsonl'), patches),
  };
}

test('a run that draws its groups has the same draws after a kill', async () => {
  const scene = openScene({ SWEFARM_RUNTIME: 'rootfs', SWEFARM_CONCURRENCY: '2' });
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: scene.folder });
  const { rows, patches } = await dataset(built.files.rootfs);
  const flags = ['--dataset', rows, '--agent', 'patch', '--patches', patches, '--group-size', '2'];
  flags.push('--until-groups', '2', '--keep', 'mixed', '--max-groups', String(ROWS), '--draw-seed', '4');
  const whole = await scene.rollouts('whole', flags);

  const output = join(scene.folder, 'killed.jsonl');
  const killed = scene.start`rollout ${flags} --output ${output}`;
  const lines = async () => (await readFile(output, 'utf8').catch(() => '')).split('\n').length - 1;
  await poll(async () => (await lines()) >= 1, { pauseMs: 20, withinMs: 300_000 });
  killed.kill('SIGKILL');
  await killed.exit;

  const ended = await scene.swefarm`rollout ${flags} --output ${output} --resume`;
  expect(ended.code, ended.stderr).toBe(0);
  expect(ended.stderr).toMatch(/2 of 2 groups selected \(mixed\), \d+ drawn of at most 6/);
  expect(ended.stderr).toMatch(/pass rate of the dataset 0\.\d{3} \(95 %: /);
  const names = (found: readonly Line[]) =>
    found.map((line) => `${line.instance_id}.${line.rollout_index}`).sort();
  const resumed = await readLines<Line>(output);
  expect(names(resumed)).toEqual(names(whole));
  expect(resumed.filter(({ reward }) => reward === 1)).toHaveLength(2);
});
