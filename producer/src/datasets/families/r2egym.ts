/**
 * R2E-Gym: the image holds the repository before the fix and hidden tests beside it; the row says which status each test has behind
 * the fix. Rules: R2E-Gym 69bc953 and agentica-project/R2E-Gym 353348a.
 */
import { asObject, type FieldReader, type Row } from '../fields/fields.ts';
import { withTag } from '../fields/image.ts';
import type { Family, InstanceDraft } from './family.ts';
import { ParsedCommitError, patchOfParsedCommit } from './parsedcommit.ts';
import { attempts, planned, shownId, word } from './planned.ts';

export const r2eGym: Family = {
  name: 'r2e-gym',
  columns: ['repo_name', 'commit_hash', 'expected_output_json', 'parsed_commit_content'],
  // Its SWE-bench copies have no expected outputs, and are read as SWE-bench.
  fits: (row) =>
    filled(row.expected_output_json) &&
    (filled(row.commit_hash) || (typeof row.docker_image === 'string' && TAGGED.test(row.docker_image))),
  names: (row) => ({ id: idOf(row), repo: row.repo_name ?? row.repo }),
  read: readR2e,
};

const TAGGED = /_final:[0-9a-f]{40}$/;
const filled = (value: unknown): boolean => value !== undefined && value !== null && value !== '';

/** `<repository>-<commit>`; NeMo's wrapper has an id of its own. */
function idOf(row: Row): unknown {
  if (filled(row.instance_id)) return row.instance_id;
  const commit =
    row.commit_hash ??
    String(row.docker_image ?? '')
      .split(':')
      .at(-1);
  return typeof row.repo_name === 'string' && typeof commit === 'string'
    ? `${row.repo_name}-${commit}`
    : undefined;
}

function readR2e(read: FieldReader): InstanceDraft {
  const { row } = read;
  // NeMo's copies have owner and name in the column repo.
  const repo = word(
    read,
    'repo_name',
    row.repo_name ??
      String(row.repo ?? '')
        .split('/')
        .at(-1),
  );
  const id = idOf(row);
  const instanceId = typeof id === 'string' ? id : '';
  if (instanceId === '')
    read.complain('commit_hash', 'the commit of the fix', row.commit_hash, 'add the column');
  const image = read.image(['docker_image', 'image', 'image_name']);
  if (image === null && !read.complainedOf('docker_image', 'image', 'image_name'))
    read.complain(
      'docker_image',
      'the image of the instance',
      row.docker_image,
      'add the column docker_image',
    );
  const before = asObject(row.parsed_commit_content)?.old_commit_hash;
  return planned({
    instance_id: instanceId,
    shown_id: shownId(repo, instanceId),
    repo,
    base_commit: typeof before === 'string' && before !== '' ? before : 'HEAD',
    problem_statement: issueIn(read),
    patch: goldOf(read),
    FAIL_TO_PASS: [],
    PASS_TO_PASS: [],
    family: 'r2e-gym',
    image: image === null ? '' : withTag(image),
    environment: ENVIRONMENT,
    plan: {
      grader: 'r2e-gym',
      apply: attempts('git apply --whitespace=fix'),
      script: '#!/bin/bash\ncd /testbed\nbash /root/run_tests.sh\n',
      timeout: 300,
      outcomes: { from: 'log', dialect: 'r2e-gym', parser: 'r2e' },
      verdict: { rule: 'expected', expected: expectedOf(read) },
    },
  });
}

/** The text between the tags, or the whole text without them. */
function issueIn(read: FieldReader): string {
  const text = read.text('problem_statement', 'add the text of the issue');
  return (/\[ISSUE\]([\s\S]*?)\[\/ISSUE\]/.exec(text)?.[1] ?? text).trim();
}

/** As the row has it: the rule of the verdict cleans the names of both sides. */
function expectedOf(read: FieldReader): Record<string, string> {
  const expected = read.object('expected_output_json', 'export the column as JSON');
  const odd = Object.entries(expected).find(([, status]) => typeof status !== 'string');
  if (odd)
    read.complain('expected_output_json', 'a status for each test', odd[1], 'export the column as JSON');
  if (Object.keys(expected).length === 0 && !read.complainedOf('expected_output_json')) {
    read.complain('expected_output_json', 'at least one test', {}, 'without tests nothing can be judged');
  }
  return expected as Record<string, string>;
}

/** The fix without its tests, as upstream's own readers take it; empty when the row withholds it. */
function goldOf(read: FieldReader): string {
  const given = read.row.parsed_commit_content ?? null;
  if (given === null || given === '') return read.optionalText('patch') ?? '';
  try {
    const content = typeof given === 'string' ? given : JSON.stringify(given);
    return patchOfParsedCommit(content, 'non_test_python');
  } catch (error) {
    if (!(error instanceof ParsedCommitError)) throw error;
    read.complain('parsed_commit_content', 'a commit of R2E-Gym', given, error.message);
    return '';
  }
}

/** Upstream's setup, of which each step may fail there too. Its link that lets the agent read the tests is made for the evaluation only. */
const ENVIRONMENT: NonNullable<InstanceDraft['environment']> = {
  workdir: '/testbed',
  activate: '',
  env: {
    PATH: '/testbed/.venv/bin:/root/.venv/bin:/root/.local/bin:/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  },
  setup: [
    {
      name: 'link the Python environment',
      script: [
        '[ -e /root/.venv ] || ln -s /testbed/.venv /root/.venv',
        'mkdir -p /root/.local/bin',
        'for name in python python3; do ln -sf "/testbed/.venv/bin/$name" "/root/.local/bin/$name"; done',
        'find /testbed/.venv/bin -type f -executable -exec ln -sf {} /root/.local/bin/ \\;',
      ].join('\n'),
      may_fail: true,
    },
    {
      name: 'install chardet',
      script: "python -c 'import chardet' 2>/dev/null || timeout 20 uv pip install chardet",
      may_fail: true,
      timeout: 30,
    },
    {
      name: 'remove compiled files',
      script:
        'find /testbed /r2e_tests \\( -name __pycache__ -o -name "*.pyc" \\) -not -path "*/.git/*" -exec rm -rf {} + 2>/dev/null',
      may_fail: true,
    },
    {
      name: 'bring the tests to where they run',
      roles: ['evaluation'],
      script: [
        '[ ! -e /testbed/run_tests.sh ] || mv /testbed/run_tests.sh /root/run_tests.sh',
        '[ ! -e /testbed/r2e_tests ] || [ -L /testbed/r2e_tests ] || mv /testbed/r2e_tests /root/r2e_tests',
        '[ ! -e /r2e_tests ] || mv /r2e_tests /root/r2e_tests',
        'ln -sfn /root/r2e_tests /testbed/r2e_tests',
        '[ -f /root/run_tests.sh ] && [ -d /root/r2e_tests ]',
      ].join('\n'),
    },
  ],
  hidden: [
    '/r2e_tests',
    '/root/r2e_tests',
    '/testbed/r2e_tests',
    '/testbed/run_tests.sh',
    '/root/run_tests.sh',
  ],
  history: 'pruned',
};
