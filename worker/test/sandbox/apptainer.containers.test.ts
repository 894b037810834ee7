/** The contract on Apptainer, and what is its own: where images are looked for, .sif files, limits without control groups. */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { minimalImage } from '@swefarm/testkit';
import { afterAll } from 'vitest';
import { apptainerRuntime } from '../../src/sandbox/apptainer/runtime.ts';
import { sandboxContract } from './contract.ts';
import { WHOLE } from './subject.ts';

const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'swefarm-apptainer-'));
await chmod(folder, 0o755);
const places = { imagesDir: join(folder, 'images'), scratchDir: join(folder, 'scratch') };
afterAll(() => rm(folder, { recursive: true, force: true }));

sandboxContract(
  'apptainer',
  async () => {
    const [full, bare] = await Promise.all([minimalImage(), minimalImage({ bash: false })]);
    const sif = join(folder, 'minimal.sif');
    await run('apptainer', ['--silent', 'build', sif, full.tree]);
    return {
      runtime: await apptainerRuntime({ ...places, templates: [] }),
      image: sif,
      imageWithoutBash: bare.tree,
    };
  },
  { isolated: true, limits: ['memory', 'pids'], whole: WHOLE },
);
