/** Makes rows of six families on Docker: rows from the examples, and rows for families whose images have no conda. */
import { join } from 'node:path';
import { buildExamples } from '../../src/examples/build.ts';
import { makeFamilyInstances } from '../../src/families/instances.ts';
import { smithParse } from '../../src/families/smith.ts';
import { makeExampleInstances } from '../../test/e2e/exampleinstances.ts';
import { openFamilyImages } from '../../test/e2e/familyimages.ts';

const BESIDE_CONDA = ['r2e-gym', 'r2e-gym as NeMo Gym posts it', 'open-swe'];

type Row = Record<string, unknown>;
/** `auto` and `swegym` have the rows for this `--grader`. `examples` has the rows that the scripted policy can solve. */
export type MadeRows = AsyncDisposable & Record<'auto' | 'swegym' | 'examples', Row[]>;

export async function makeRows(folder: string): Promise<MadeRows> {
  const { rows: examples } = await buildExamples({ for: 'docker', out: join(folder, 'examples') });
  const smith = await smithParse(folder, 'docker', ['absent', 'tests removed']);
  const conda = await makeExampleInstances(folder, 'docker', {
    tag: 'harbor',
    families: ['swe-rebench', 'swe-lego'],
  });
  const images = await openFamilyImages('harbor');
  const others = await makeFamilyInstances(join(folder, 'trees'), images, BESIDE_CONDA);
  return {
    examples,
    auto: [...examples, ...smith, ...[...conda.values(), ...others.values()].map(({ row }) => row)],
    swegym: examples.slice(0, 2).map((row) => ({ ...row, instance_id: `${row.instance_id}-swegym` })),
    [Symbol.asyncDispose]: () => images[Symbol.asyncDispose](),
  };
}
