/**
 * The contract on Apptainer, and its own features: the search for images, limits without control groups, life without root.
 * Where setup could not install Apptainer, the test reports that and skips the rest.
 */
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { minimalImage } from '@swefarm/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apptainerRuntime } from '../src/apptainer/runtime.ts';
import { run } from '../src/run.ts';
import type { Runtime } from '../src/runtime.ts';
import { sandboxContract } from './contract.ts';
import { memoryContract } from './memory-contract.ts';
import { cannotBeAnother, tryAsUser } from './other.ts';
import {
  describeUnless,
  NEVER,
  noApptainer,
  OPTIONS,
  printed,
  runtimeFolders,
  spec,
  WHOLE,
} from './subject.ts';

const CHILD = new URL('./apptainer.child.ts', import.meta.url).pathname;
const missing = noApptainer();
const { folder, ...folders } = await runtimeFolders('apptainer');

it('is installed, or reported missing', async () => {
  await using runtime = await apptainerRuntime({
    ...folders,
    templates: [],
    command: missing === null ? null : '/none',
  });
  expect((await runtime.check(NEVER)).usable).toBe(missing === null);
});

describeUnless(missing, 'apptainer', () => {
  let sif: string;
  let tree: string;
  beforeAll(async () => {
    tree = (await minimalImage()).tree;
    sif = join(folder, 'sif/minimal_s_image-1.sif');
    await mkdir(join(folder, 'sif'));
    await run('apptainer', ['--silent', 'build', sif, tree]);
  });

  sandboxContract(
    'apptainer',
    async () => ({
      runtime: await apptainerRuntime({ ...folders, templates: [] }),
      image: sif,
      imageWithoutBash: (await minimalImage({ bash: false })).tree,
    }),
    { isolated: true, children: true, limits: { memory: 'enforced', pids: 'enforced' }, whole: WHOLE },
  );

  it('finds an image by the id of its instance, and names every path of a missing image', async () => {
    await using runtime = await apptainerRuntime({
      ...folders,
      templates: [join(folder, 'sif/{instance_id}.sif'), '/nowhere/{image}'],
    });
    const image = await runtime.ensureImage('some/name:1', NEVER, 'minimal__image-1');
    await using container = await runtime.start(spec(image, { workdir: '/made/by/start' }), NEVER);
    expect(await printed(container, 'pwd; ls -A')).toBe('/made/by/start\n');
    await expect(runtime.ensureImage('some/name:1', NEVER, 'other__image-1')).rejects.toThrow(
      /other__image-1\.sif.*other_s_image-1\.sif.*other_1776_image-1\.sif.*name\.sif.*\/nowhere\/name/,
    );
  });

  describe('without control groups and mounts of .sif files', () => {
    let runtime: Runtime;
    beforeAll(async () => {
      runtime = await apptainerRuntime({ ...folders, templates: [], cgroups: false, mountSif: false });
    });
    afterAll(() => runtime[Symbol.asyncDispose]());

    it('reports watched limits', async () => {
      expect((await runtime.check(NEVER)).limits).toMatchObject({ memory: 'watched', disk: 'watched' });
    });
    memoryContract(() => ({ runtime, image: sif, imageWithoutBash: null }), 'watched');
  });

  it('processes get the environment of the image, and not that of the host', async () => {
    const copy = join(folder, 'with-environment');
    await cp(tree, copy, { recursive: true, verbatimSymlinks: true });
    await mkdir(join(copy, '.singularity.d/env'), { recursive: true });
    await run('sh', ['-c', 'echo "export FROM_IMAGE=yes" > .singularity.d/env/10-docker.sh'], { cwd: copy });
    await using runtime: Runtime = await apptainerRuntime({ ...folders, templates: [] });
    await using container = await runtime.start(spec(await runtime.ensureImage(`dir:${copy}`, NEVER)), NEVER);
    const names = (await container.exec(['env'], OPTIONS)).output.toString();
    expect(names).toContain('FROM_IMAGE=yes\n');
    expect(names).not.toMatch(/^(APPTAINER|SINGULARITY|npm_|VITEST)/m);
  });

  describeUnless(cannotBeAnother(CHILD), 'without root', () => {
    it('starts, limits processes, and leaves nothing behind', () => tryAsUser(CHILD, folder, tree));
  });
});
