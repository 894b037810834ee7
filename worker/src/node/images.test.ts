import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadConfig, silentLog } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { runImages } from './images.ts';

/** Returns how many times a conversion of `count` images without an engine reads the address of the engine. */
async function readsOfSocket(count: number): Promise<number> {
  const folder = temporaryFolder('convert');
  const program = join(folder, 'apptainer');
  await writeFile(program, '#!/bin/sh\n');
  await chmod(program, 0o755);
  const flags = {
    runtime: 'docker',
    images_dir: folder,
    apptainer_command: program,
    apptainer_images: join(folder, '{image}.sif'),
  };
  let reads = 0;
  const config = Object.create(loadConfig('worker', { env: {}, flags }), {
    docker_socket: {
      get() {
        reads++;
        return join(folder, 'absent.sock');
      },
    },
  });
  const needed = Array.from({ length: count }, (_, at) => ({ image: `image-${at}`, instances: [] }));
  const { signal } = new AbortController();
  const command = { config, log: silentLog(), signal, print: () => undefined };
  await expect(runImages('convert', needed, command)).rejects.toThrow('no usable runtime');
  return reads;
}

test('a conversion without an engine looks for the engine once, not for each image', async () => {
  expect(await readsOfSocket(20)).toBe(await readsOfSocket(1));
});
