import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/temporaryfolder.ts';
import { cached } from './cache.ts';
import { readExamples } from './recipe.ts';
import { mapLimited, run } from './run.ts';
import { fetchSdist } from './sources.ts';

let dir: string;
beforeEach(async () => {
  dir = temporaryFolder('sources');
});
const { signal } = new AbortController();

test('an archive with another checksum is refused with both sums, the recipe and the folder', async () => {
  const [example] = await readExamples(resolve(import.meta.dirname, '../../../examples'), [
    'r1chardj0n3s__parse-1.20.2',
  ]);
  if (!example) throw new Error('no recipe');
  const folder = join(dir, 'sdists/parse-1.20.1');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'sdist.tar.gz'), 'damaged');
  const fetching = fetchSdist(dir, example.recipe, example.recipe.broken, signal);
  await expect(fetching).rejects.toMatchObject({ code: 'example_checksum' });
  await expect(fetching).rejects.toThrow(
    new RegExp(`parse==1.20.1.*sha256 [0-9a-f]{64}.*${example.recipe.broken.sdist_sha256}.*${folder}`),
  );
});

test('a cache entry is made once and complete, and again after a failure', async () => {
  const path = join(dir, 'deep/entry');
  const failing = cached(path, async (draft) => {
    await writeFile(draft, 'half');
    throw new Error('cut');
  });
  await expect(failing).rejects.toThrow('cut');
  let made = 0;
  const make = async (draft: string) => {
    made++;
    await writeFile(draft, 'whole');
  };
  await Promise.all([cached(path, make), cached(path, make)]);
  await cached(path, make);
  expect(made).toBe(1);
  expect((await run(['ls', join(dir, 'deep')], { signal })).stdout).toBe('entry\n');
});

test('a failed command shows its last lines; a missing command is another error', async () => {
  const failing = run(['sh', '-c', 'echo why it failed >&2; exit 3'], { signal });
  await expect(failing).rejects.toMatchObject({
    code: 'example_command',
    message: expect.stringMatching(/exit code 3\nwhy it failed$/),
  });
  await expect(run(['no-such-program-here'], { signal })).rejects.toMatchObject({ code: 'example_missing' });
});

test('at most the given number run at a time, with results in order', async () => {
  let now = 0;
  let most = 0;
  const results = await mapLimited([30, 20, 10, 5], 2, async (ms) => {
    most = Math.max(most, ++now);
    await new Promise((resolve) => setTimeout(resolve, ms));
    now--;
    return ms;
  });
  expect(results).toEqual([30, 20, 10, 5]);
  expect(most).toBe(2);
});
