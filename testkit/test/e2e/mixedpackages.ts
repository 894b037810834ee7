/** Makes instances with a real package and its tests for a mixed dataset. */
import { join } from 'node:path';
import { buildExamples } from '../../src/examples/build.ts';
import { smithParse } from '../../src/families/smith.ts';
import { makeExampleInstances } from './exampleinstances.ts';
import type { MixedInstance } from './mixedrows.ts';
import { EXAMPLE_ID } from './scripts.ts';

/** Returns the commands for the example `parse`. @param apply git command that applies the row's patch as a fix */
const parseCommands = (patch: string, apply: string): MixedInstance['commands'] => ({
  'mends it': `${apply} <<'SWEFARM_PATCH'\n${patch.endsWith('\n') ? patch : `${patch}\n`}SWEFARM_PATCH`,
  'does something else': 'echo note >NOTES.txt',
  'breaks it': "echo 'def (' >>parse.py",
  'mends it wrongly': 'printf \'\\nDASHES = "-"\\n\' >>parse.py',
  'edits the tests': "printf 'def test_nothing():\\n    pass\\n' >tests/test_parse.py",
});

/** Makes instances in the forms of SWE-bench, SWE-smith and SWE-rebench V1. */
export async function packageInstances(folder: string): Promise<MixedInstance[]> {
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: join(folder, 'example') });
  const [given] = built.rows;
  const [smith] = await smithParse(join(folder, 'smith'), 'rootfs', ['absent']);
  if (!given || !smith) throw new Error(`${EXAMPLE_ID} was not built`);
  const forms = await makeExampleInstances(join(folder, 'forms'), 'rootfs', { families: ['swe-rebench'] });
  const commands = parseCommands(given.patch, 'git apply');
  return [
    { id: EXAMPLE_ID, family: 'custom', row: given, commands },
    {
      ...{ id: smith.instance_id, family: 'swesmith', row: smith },
      commands: { ...parseCommands(smith.patch, 'git apply -R') },
    },
    ...[...forms].map(([family, { id, row }]): MixedInstance => ({ id, family, row, commands })),
  ];
}
