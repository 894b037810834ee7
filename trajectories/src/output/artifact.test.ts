import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { encodeArtifact, type Farm } from '@swefarm/shared';
import { bareArtifact } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { artifactOfLine } from './artifact.ts';

const artifactWith = (patch: string) => encodeArtifact(bareArtifact({ patch }));
const noFarm = (): Promise<Farm> => Promise.reject(new Error('no farm is needed'));

async function folder(name: string): Promise<string> {
  const parent = temporaryFolder('artifacts');
  await mkdir(join(parent, name));
  return join(parent, name);
}

test.each(['plain', 'with a blank', '100 %', 'a#b', 'é'])('a folder named "%s" is read', async (name) => {
  const path = join(await folder(name), 'x.1.a.swefarm.json.gz');
  await writeFile(path, await artifactWith('a patch'));
  const read = await artifactOfLine({ artifact: pathToFileURL(path).href }, noFarm);
  expect(read).toMatchObject({ patch: 'a patch' });
});

test('the copy that a line names goes first; one that is gone is named', async () => {
  const at = await folder('copies');
  const copy = join(at, 'x.json.gz');
  await writeFile(copy, await artifactWith('the copy'));
  const artifact = pathToFileURL(join(at, 'gone.swefarm.json.gz')).href;
  expect(await artifactOfLine({ artifact, artifact_file: copy }, noFarm)).toMatchObject({
    patch: 'the copy',
  });
  await expect(artifactOfLine({ artifact }, noFarm)).rejects.toMatchObject({ code: 'artifact_missing' });
  const lost = artifactOfLine({ artifact: null, artifact_file: `${copy}.lost` }, noFarm);
  await expect(lost).rejects.toThrow(/its artifact .*\.lost cannot be read/);
  expect(await artifactOfLine({ artifact: null }, noFarm)).toBeNull();
});
