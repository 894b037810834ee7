import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { encodeLine, outputLine } from '@swefarm/trajectories';
import { aResult } from '@swefarm/trajectories/test/result.ts';
import { expect, test } from 'vitest';
import { readFileSource } from './filesource.ts';

const options = { dataset: null, farm: () => Promise.reject(new Error('no farm is needed')) };

const line = (index: number, patch: string, reward = 1): string => {
  const result = aResult({
    ...{ run_id: 'r', instance_id: 'i', rollout_id: `r.i.${index}` },
    ...{ rollout_index: index, artifact: null, reward },
  });
  return encodeLine(outputLine(result, { patch, report: null }));
};

async function fileWith(text: string): Promise<string> {
  const path = join(temporaryFolder('results'), 'out.jsonl');
  await writeFile(path, text);
  return path;
}

test('a patch is read at the position of its line, without the lines before', async () => {
  const first = line(0, 'é');
  // The second line is longer than a chunk of the stream; the last is incomplete, because a collector is writing it.
  const long = 'ü'.repeat(100_000);
  const path = await fileWith(
    [first, '', `{"swefarm":${line(1, long)}}\r`, line(2, 'c'), '{"rollout'].join('\n'),
  );
  const source = await readFileSource(path, options);
  const patches = async (...indexes: number[]) =>
    await Promise.all(indexes.map(async (index) => (await source.rollout(`r.i.${index}`)).patch));
  expect(await patches(0, 1, 2)).toEqual(['é', long, 'c']);

  await using file = await open(path, 'r+');
  await file.write('x'.repeat(Buffer.byteLength(first)), 0);
  expect(await patches(1, 2)).toEqual([long, 'c']);
  await expect(patches(0)).rejects.toThrow('the file has changed: start this command again');
});

test('a rollout with two lines counts once, with its last line', async () => {
  const path = await fileWith(`${line(0, 'old', 0)}\n${line(1, 'b')}\n${line(0, 'new', 1)}\n`);
  const source = await readFileSource(path, options);
  const { run, rollouts } = await source.run('r', '0');
  expect(run).toMatchObject({ committed: 2, reward_mean: 1 });
  expect(rollouts.map(({ index, reward }) => [index, reward])).toEqual([
    [0, 1],
    [1, 1],
  ]);
  expect(await source.rollout('r.i.0')).toMatchObject({ patch: 'new', siblings: [0, 1] });
});
