/** Tests `swefarm-worker images pull` with an image that the node builds from a Harbor task. */
import { Readable } from 'node:stream';
import { BUILT_IMAGES, loadConfig, newId, silentLog } from '@swefarm/shared';
import { ensureDocker } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import Docker from 'dockerode';
import { expect, onTestFinished, test } from 'vitest';
import { readNeeded, runImages } from '../src/node/images.ts';
import { taskOf } from './matrix/harbortasks.ts';

test('images pull builds the image of a task', async () => {
  const socketPath = '/var/run/docker.sock';
  await using _engine = await ensureDocker({ socketPath });
  const image = `${BUILT_IMAGES}${newId().toLowerCase()}`;
  onTestFinished(async () => {
    await new Docker({ socketPath }).getImage(image).remove({ force: true });
  });
  const base64 = Buffer.from(`FROM scratch\nLABEL own=${newId()}\n`).toString('base64');
  const files = { 'environment/Dockerfile': { base64, executable: false } };
  const { harbor } = taskOf(undefined, { files, build: { timeout: 60 } });
  const needed = await readNeeded(Readable.from([JSON.stringify({ image, instances: ['one'], harbor })]));
  const flags = { runtime: 'docker', images_dir: temporaryFolder('images') };
  const config = loadConfig('worker', { env: {}, flags });
  const lines: object[] = [];
  const command = { config, log: silentLog(), signal: new AbortController().signal };
  expect(await runImages('pull', needed, { ...command, print: (line) => lines.push(line) })).toBe(true);
  expect(lines).toMatchObject([{ image, digest: `sha256:${image.slice(BUILT_IMAGES.length)}` }]);
});
