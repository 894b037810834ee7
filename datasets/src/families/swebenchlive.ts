/** Reads rows of SWE-bench-Live and its MultiLang part: command lists and a parser in Python. Rules: microsoft/SWE-bench-Live 70ec57e. */
import { liveProgram } from '@swefarm/grading';
import { heredoc, unescaped } from '../fields/bash.ts';
import type { FieldReader } from '../fields/fields.ts';
import { harnessImage, withTag } from '../fields/image.ts';
import type { Family, InstanceDraft } from './family.ts';
import { attempts, basics, imageOr, readTests } from './planned.ts';

export const sweBenchLive: Family = {
  name: 'swe-bench-live',
  columns: ['rebuild_cmds', 'test_cmds', 'print_cmds', 'log_parser', 'parser', 'platform', 'os'],
  fits: ({ test_cmds, log_parser, parser }) =>
    (Array.isArray(test_cmds) || typeof test_cmds === 'string') &&
    (typeof log_parser === 'string' || typeof parser === 'string'),
  read: readLive,
};

/** Activates the conda environment `testbed`, which only images of the Python part have. */
const ACTIVATE =
  'if [ -f /opt/miniconda3/bin/activate ]; then source /opt/miniconda3/bin/activate && conda activate testbed; fi';

const MEMORY_BYTES = 16 * 1024 ** 3;

function readLive(read: FieldReader): InstanceDraft {
  const common = basics(read, 'hints_text', 'patch', 'test_patch');
  const image = imageOr(read, harnessImage('starryzhang', common.instance_id));
  if (
    [image, read.row.platform, read.row.os].some((text) => typeof text === 'string' && WINDOWS.test(text))
  ) {
    read.refuse('Windows instances need Windows', 'image', 'an image of Linux', image);
  }
  const testPatch = common.test_patch;
  return {
    ...common,
    ...testsOf(read),
    family: 'swe-bench-live',
    image: withTag(image),
    environment: { workdir: '/testbed', activate: ACTIVATE, memory_bytes: MEMORY_BYTES },
    plan: {
      grader: 'swe-bench-live',
      before:
        testPatch === ''
          ? []
          : [{ name: 'apply the test patch', script: heredoc(`${APPLY} -`, testPatch), may_fail: true }],
      apply: attempts(APPLY),
      unapplied: 'tests_run',
      blank: 'ends',
      script: scriptOf(read),
      timeout: 150 * 60,
      outcomes: outcomesOf(read),
      verdict: { rule: 'live' },
    },
  };
}

/** Refuses rows without FAIL_TO_PASS: the harness accepts missing PASS_TO_PASS tests, so a patch that stops all tests would be resolved. */
function testsOf(read: FieldReader): ReturnType<typeof readTests> {
  const tests = readTests(read);
  if (tests.FAIL_TO_PASS.length === 0 && tests.PASS_TO_PASS.length > 0) {
    const expected = 'a test that fails without the fix';
    read.refuse('no test that only the fix passes', 'FAIL_TO_PASS', expected, []);
  }
  return tests;
}

const APPLY = 'git apply --reject --whitespace=nowarn';
const WINDOWS = /\.win\.|windows|_win\b/i;

/** Returns a script that runs each list of commands in one shell. The log contains only the output that the parser reads. */
function scriptOf(read: FieldReader): string {
  const joined = (name: string): string => read.commands(name).map(unescaped).join(' ; ');
  const [rebuild, tests, print] = [joined('rebuild_cmds'), joined('test_cmds'), joined('print_cmds')];
  if (tests === '') read.refuse('no test command', 'test_cmds', 'a list of commands', read.row.test_cmds);
  const quiet = (commands: string): string => `{ ${commands}\n} >>/tmp/swefarm-tests.log 2>&1`;
  const run =
    print === ''
      ? [heredoc('cat >run_test.sh', tests), 'bash run_test.sh >testlog.out 2>&1', 'cat testlog.out']
      : [quiet(tests), print];
  return [
    '#!/bin/bash',
    'export TERM=xterm-mono',
    ACTIVATE,
    'cd /testbed',
    ...(rebuild === '' ? [] : [quiet(rebuild)]),
    ...run,
    '',
  ].join('\n');
}

function outcomesOf(read: FieldReader): NonNullable<InstanceDraft['plan']>['outcomes'] {
  const column = typeof read.row.log_parser === 'string' ? 'log_parser' : 'parser';
  const source = read.text(column, 'export the whole row');
  if (source === 'pytest') return { from: 'log', dialect: 'swe-bench-live', parser: 'pytest' };
  if (source !== '' && !source.includes('def parser')) {
    const expected = 'Python text that defines `parser`, or pytest';
    read.refuse('a log parser that its harness has not', column, expected, source);
  }
  return liveProgram(source);
}
