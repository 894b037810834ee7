/** Tests `swefarm-worker images pull` with an image that the node builds from a Harbor task. */
import { Readable } from 'node:stream';
import { BUILT_IMAGES, loadConfig, newId, silentLog } from '@swefarm/shared';
import { ensureDocker } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import Docker from 'dockerode';
import { expect, onTestFinished, test } from 'vitest';
import { readNeeded, runImages } from '../src/node/images.ts';
import { fileOf, taskOf } from './matrix/harbortasks.ts';

test('images pull builds the images of a task and of its separate verifier', async () => {
  const socketPath = '/var/run/docker.sock';
  await using _engine = await ensureDocker({ socketPath });
  const [image, own] = [1, 2].map(() => `${BUILT_IMAGES}${newId().toLowerCase()}`) as [string, string];
  onTestFinished(async () => {
    for (const one of [image, own]) await new Docker({ socketPath }).getImage(one).remove({ force: true });
  });
  const files = Object.fromEntries(
    ['environment', 'tests'].map((folder) => [
      `${folder}/Dockerfile`,
      fileOf(`FROM scratch\nLABEL own=${newId()}\n`),
    ]),
  );
  const build = { timeout: 60, folder: 'tests' } as const;
  const more = { has_tests: true, network: 'no-network', limits: {}, env: {} } as const;
  const separate = { image: own, build, ...more };
  const verifier = { timeout: 9, env: {}, separate };
  const { harbor } = taskOf(undefined, { files, build: { timeout: 60 }, verifier });
  const input = [image, own].map((one) => JSON.stringify({ image: one, instances: ['one'], harbor }));
  const needed = await readNeeded(Readable.from([input.join('\n')]));
  const flags = { runtime: 'docker', images_dir: temporaryFolder('images') };
  const config = loadConfig('worker', { env: {}, flags });
  const lines: object[] = [];
  const command = { config, log: silentLog(), signal: new AbortController().signal };
  expect(await runImages('pull', needed, { ...command, print: (line) => lines.push(line) })).toBe(true);
  const digestOf = (name: string): string => `sha256:${name.slice(BUILT_IMAGES.length)}`;
  const expected = [image, own].map((name) => ({ image: name, digest: digestOf(name) }));
  expect(lines).toEqual(expect.arrayContaining(expected.map((line) => expect.objectContaining(line))));
  const labels = await Promise.all(
    [image, own].map(
      async (name) => (await new Docker({ socketPath }).getImage(name).inspect()).Config.Labels,
    ),
  );
  expect(labels[0]).not.toEqual(labels[1]);
});
