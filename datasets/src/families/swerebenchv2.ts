/**
 * Reads rows of SWE-rebench V2: `install_config` names the commands and a parser, and each row has an image. The dataset's own
 * verdict requires that exactly the listed tests pass; trainers require at least these tests. Rules: SWE-rebench/SWE-rebench-V2 c71902a.
 */
import { shellQuoted } from '@swefarm/shared';
import { heredoc } from '../fields/bash.ts';
import { asObject, type FieldReader } from '../fields/fields.ts';
import { withTag } from '../fields/image.ts';
import type { Family, InstanceDraft, RowContext } from './family.ts';
import { attempts, basics, imageOr, parserOf, readTests, word } from './planned.ts';

export const sweRebenchV2: Family = {
  name: 'swe-rebench-v2',
  columns: ['install_config'],
  fits: ({ install_config }) => {
    const config = asObject(install_config);
    return config !== null && 'log_parser' in config && 'base_image_name' in config;
  },
  read: readV2,
};

const APPLY = 'git apply -v --3way --recount --ignore-space-change --whitespace=nowarn';

function readV2(read: FieldReader, { verdict, wrappedDataset }: RowContext): InstanceDraft {
  const config = read.object('install_config', 'export the column as JSON');
  const common = basics(read, 'patch');
  const workdir = `/${word(read, 'repo', common.repo.split('/').at(-1))}`;
  const testPatch = read.text('test_patch', 'its harness grades no row without one');
  const commands = read.commands('install_config.test_cmd', config.test_cmd);
  if (commands.length === 0)
    read.refuse('no test command', 'install_config.test_cmd', 'a command', config.test_cmd, 'mend the row');
  // NeMo Gym uses the rule `subset`.
  const rule = verdict ?? (wrappedDataset === null ? 'equal' : 'subset');
  return {
    ...common,
    test_patch: testPatch,
    ...readTests(read),
    family: 'swe-rebench-v2',
    image: withTag(imageOr(read, null)),
    environment: {
      workdir,
      activate: '',
      env: { _JAVA_OPTIONS: '-Djava.net.preferIPv6Addresses=false' },
      // Upstream resets the tree before it applies a patch. The agent starts from a reset tree too: otherwise a patch to files that the
      // install commands of the image changed would not apply.
      setup: [{ name: 'reset the tree', script: 'git reset --hard HEAD' }],
    },
    plan: {
      grader: rule === 'equal' ? 'swe-rebench-v2' : 'swe-rebench-v2-subset',
      apply: attempts(APPLY),
      blank: 'ends',
      script: scriptOf(workdir, testPatch, commands),
      outcomes: {
        from: 'log',
        dialect: 'swe-rebench-v2',
        parser: parserOf(read, 'install_config.log_parser', config.log_parser, 'swe-rebench-v2'),
      },
      verdict: { rule },
    },
  };
}

/** Returns the script. As in upstream's harness, the first failing command ends the script, and the log is stdout followed by stderr. */
const scriptOf = (workdir: string, testPatch: string, commands: readonly string[]): string =>
  [
    '#!/bin/bash',
    `cd ${shellQuoted(workdir)}`,
    'errors=$(mktemp)',
    '(',
    'set -e',
    heredoc(`${APPLY} -`, testPatch),
    ...commands,
    ') 2>"$errors"',
    'code=$?',
    'cat "$errors"',
    'exit $code',
    '',
  ].join('\n');
