/** Builds Docker images of trees on top of a small image of the host's programs. Disposal removes the images. */
import { execFileSync } from 'node:child_process';
import type { ImageMaker } from '../../src/families/instances.ts';
import { importTree } from '../../src/images/import.ts';
import { minimalImage } from '../../src/images/minimal.ts';

const SOCKET = process.env.SWEFARM_TEST_DOCKER_SOCKET ?? '/var/run/docker.sock';

export type FamilyImages = ImageMaker & AsyncDisposable & { base: string };

/** @param owner part of the images' names, so that images of other tests are not replaced */
export async function openFamilyImages(owner: string): Promise<FamilyImages> {
  const { tree: root, version } = await minimalImage();
  const base = `swefarm-test/minimal:${version}`;
  await importTree(SOCKET, root, base);
  const made: string[] = [];
  return {
    base,
    nameOf: (family) => `localhost/${owner}/${family.toLowerCase()}:${process.pid}`,
    async make(name, tree) {
      made.push(name);
      execFileSync('docker', ['build', '-q', '--network', 'none', '-t', name, '-f', '-', tree], {
        input: `FROM ${base}\nCOPY . /\nLABEL swefarm.test=family\n`,
      });
    },
    async [Symbol.asyncDispose]() {
      if (made.length > 0) execFileSync('docker', ['rmi', '-f', ...made]);
    },
  };
}
