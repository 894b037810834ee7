/** Reads rows of SWE-Lego: SWE-bench's columns and a test command. No grader is published. Rules: PrimeIntellect-ai/verifiers a60a606. */

import { readDiff } from '@swefarm/grading';
import { shellQuoted } from '@swefarm/shared';
import { heredoc } from '../fields/bash.ts';
import type { FieldReader } from '../fields/fields.ts';
import { withTag } from '../fields/image.ts';
import type { Family, InstanceDraft } from './family.ts';
import { attempts, basics, imageOr, readTests } from './planned.ts';

export const sweLego: Family = {
  name: 'swe-lego',
  columns: ['test_cmd'],
  fits: ({ image_name, test_cmd }) =>
    typeof image_name === 'string' && /(^|\/)jierun\/sweb\.eval\./.test(image_name) && test_cmd !== undefined,
  read: readLego,
};

function readLego(read: FieldReader): InstanceDraft {
  const common = basics(read, 'hints_text', 'version', 'patch', 'test_patch');
  const tests = readTests(read);
  const cut = [...tests.FAIL_TO_PASS, ...tests.PASS_TO_PASS].find(isCut);
  if (cut !== undefined) read.refuse('test ids that were cut short', 'FAIL_TO_PASS', 'whole test ids', cut);
  const command = read.commands('test_cmd').join('\n');
  if (command === '') read.refuse('no test command', 'test_cmd', 'a command', read.row.test_cmd);
  return {
    ...common,
    ...tests,
    family: 'swe-lego',
    image: withTag(imageOr(read, null)),
    environment: { workdir: '/testbed' },
    plan: {
      grader: 'swe-lego',
      apply: attempts('git apply --whitespace=fix', 'patch --batch --fuzz=5 -p1 -i'),
      script: scriptOf(read, common, command),
      outcomes: { from: 'log', dialect: 'swe-lego', parser: 'pytest_rA' },
      verdict: { rule: 'subset' },
    },
  };
}

/** Returns commands that reset the files of the test patch: they check out files of `base` and remove added files. */
function restoreCommands(read: FieldReader, testPatch: string, base: string): string[] {
  try {
    return readDiff(testPatch).flatMap(({ source, target }) => [
      ...(source.startsWith('a/') ? [`git checkout ${base} -- ${shellQuoted(source.slice(2))}`] : []),
      ...(target.startsWith('b/') && target.slice(2) !== source.slice(2)
        ? [`rm -f -- ${shellQuoted(target.slice(2))}`]
        : []),
    ]);
  } catch (error) {
    read.complain('test_patch', 'a unified diff', testPatch, (error as Error).message);
    return [];
  }
}

/** Whether the id has an unclosed bracket, which shows that the id was truncated. */
const isCut = (id: string): boolean => id.split('[').length > id.split(']').length;

/** Returns a script that restores the files of the test patch, applies the test patch, and runs the command of the row. */
function scriptOf(
  read: FieldReader,
  { base_commit: base, test_patch: testPatch }: ReturnType<typeof basics<'test_patch'>>,
  command: string,
): string {
  const file = '/tmp/test_patch.patch';
  const applied = [
    heredoc(`cat >${file}`, testPatch),
    `git apply --whitespace=fix ${file} || patch --batch --fuzz=5 -p1 -i ${file}`,
  ];
  return [
    '#!/bin/bash',
    'source /opt/miniconda3/bin/activate',
    'conda activate testbed',
    'cd /testbed',
    ...restoreCommands(read, testPatch, base),
    ...(testPatch === '' ? [] : applied),
    command,
    '',
  ].join('\n');
}
