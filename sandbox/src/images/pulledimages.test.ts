import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, it } from 'vitest';
import { openPulledImages } from './pulledimages.ts';

const entry = { id: 'sha256:1', digest: 'sha256:2', bytes: 10 };

it('workers share the list of pulled images, which has no other images', async () => {
  const folder = temporaryFolder('pulled');
  const [one, two] = [openPulledImages(join(folder, 'b.json')), openPulledImages(join(folder, 'b.json'))];
  await Promise.all([one.add('a', entry), two.add('b', entry)]);
  await one.used('never-pulled');
  expect([...(await two.list()).keys()].sort()).toEqual(['a', 'b']);
  await one.drop(['a']);
  expect([...(await two.list()).keys()]).toEqual(['b']);
});
