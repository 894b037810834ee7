import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { encodeArtifact, type Farm } from '@swefarm/shared';
import { bareArtifact } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { artifactOfLine, copyOf } from './artifact.ts';

const artifactWith = (patch: string) => encodeArtifact(bareArtifact({ patch }));
/** No copy is beside this output. */
const OUTPUT = '/none/rollouts.jsonl';
const noFarm = (): Promise<Farm> => Promise.reject(new Error('no farm is needed'));

async function folder(name: string): Promise<string> {
  const parent = temporaryFolder('artifacts');
  await mkdir(join(parent, name));
  return join(parent, name);
}

test.each(['plain', 'with a blank', '100 %', 'a#b', 'é'])('a folder named "%s" is read', async (name) => {
  const path = join(await folder(name), 'x.1.a.swefarm.json.gz');
  await writeFile(path, await artifactWith('a patch'));
  const read = await artifactOfLine({ artifact: pathToFileURL(path).href }, OUTPUT, noFarm);
  expect(read).toMatchObject({ patch: 'a patch' });
});

test('the copy that a line names has priority; the error names a missing copy', async () => {
  const at = await folder('copies');
  const copy = join(at, 'x.json.gz');
  await writeFile(copy, await artifactWith('the copy'));
  const artifact = pathToFileURL(join(at, 'gone.swefarm.json.gz')).href;
  expect(await artifactOfLine({ artifact, artifact_file: copy }, OUTPUT, noFarm)).toMatchObject({
    patch: 'the copy',
  });
  await expect(artifactOfLine({ artifact }, OUTPUT, noFarm)).rejects.toMatchObject({
    code: 'artifact_missing',
  });
  const lost = artifactOfLine({ artifact: null, artifact_file: `${copy}.lost` }, OUTPUT, noFarm);
  await expect(lost).rejects.toThrow(/its artifact .*\.lost cannot be read/);
  expect(await artifactOfLine({ artifact: null }, OUTPUT, noFarm)).toBeNull();
});

test('a copy is found in the folder of the collector, or beside a moved output', async () => {
  const at = await folder('moved');
  await writeFile(join(at, 'x.json.gz'), '');
  const output = join(at, 'rollouts.jsonl');
  expect(copyOf({ artifact_file: 'x.json.gz' }, output)).toBe(join(at, 'x.json.gz'));
  // The collector ran in the current folder, and the output is in another one.
  const here = relative(process.cwd(), join(at, 'x.json.gz'));
  expect(copyOf({ artifact_file: here }, output)).toBe(join(at, 'x.json.gz'));
  expect(copyOf({ artifact_file: 'lost' }, output)).toBe(resolve('lost'));
  expect(copyOf({}, output)).toBeNull();
});
