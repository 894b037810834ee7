/**
 * The editor against SWE-agent's own tool, in the same sandbox: the same files, and the same observations up to wording. It needs a checkout
 * of SWE-agent (`git clone https://github.com/SWE-agent/SWE-agent`) in SWEFARM_TEST_SWE_AGENT.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Container, openShell } from '@swefarm/sandbox';
import { LIMITS, NEVER, spec } from '@swefarm/sandbox/test/subject.ts';
import { shellQuoted } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { Editor } from '../../src/agent/editor/editor.ts';
import type { RunScript } from '../../src/agent/editor/files.ts';
import { RUNTIMES } from '../matrix/runtimes.ts';
import { openMachine } from '../matrix/scene.ts';
import { type EditorCall, type EditorCase, editorCases } from './editorcases.ts';

const CHECKOUT = process.env.SWEFARM_TEST_SWE_AGENT;
const CASES = 130;
const FOLDER = '/testbed/edited';
const TOOLS = ['registry/lib/registry.py', 'edit_anthropic/bin/str_replace_editor'];
const reference = fileURLToPath(new URL('./reference.py', import.meta.url));

type Outcome = { code: number | string; text: string; file: string | null };

/** Exit codes of SWE-agent's tool, and what our errors say. */
const ERRORS: Record<number, RegExp> = {
  ...{ 1: /file_text/, 2: /old_str/, 3: /insert_line/, 4: /new_str/, 5: /no command/, 7: /does not exist/ },
  ...{
    8: /exists: `create`/,
    9: /is a directory/,
    10: /not allowed/,
    12: /the first line/,
    13: /the last line is beyond/,
  },
  ...{
    14: /before the first/,
    15: /does not occur/,
    16: /more than once/,
    17: /insert_line/,
    18: /no edit/,
    161: /equals/,
  },
  ...{ 20: /directory of .* does not exist|could not be written/, 21: /directory of .* does not exist/ },
};

/** Returns the numbered lines of an observation, and the numbers of an error, without the words. */
function shownIn(text: string): string[] {
  const lines = text.split('\n').flatMap((line) => /^ *\d+\t.*/.exec(line)?.[0] ?? []);
  if (lines.length === 0) return text.match(/\[[-\d, ]*\]/g) ?? [];
  return lines.map((line) => line.replace(/<response clipped>.*/, '<response clipped>'));
}

/** Returns the entries of a folder, in any order. */
const entriesIn = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('/'))
    .sort();

async function playReference(container: Container, cases: EditorCase[]): Promise<Outcome[][]> {
  const files = TOOLS.map((path) => ({
    path: `/swe-agent/${path}`,
    content: readFileSync(`${CHECKOUT}/tools/${path}`),
  }));
  const own = [
    { path: '/swe-agent/reference.py', content: readFileSync(reference) },
    { path: '/swe-agent/cases.json', content: Buffer.from(JSON.stringify(cases)) },
  ];
  await container.putFiles([...files, ...own], NEVER);
  const script =
    'PYTHONUTF8=1 python3 /swe-agent/reference.py /swe-agent /swe-agent/cases.json >/swe-agent/answers.json';
  const done = await container.exec(['sh', '-c', script], {
    timeoutMs: 300_000,
    maxOutputBytes: 10_000,
    signal: NEVER,
  });
  expect([done.exitCode, done.output.toString()]).toEqual([0, '']);
  const answers = await container.getFile('/swe-agent/answers.json', 64 * 1024 ** 2, NEVER);
  return JSON.parse(String(answers));
}

/** Returns what differs between the two outcomes of a call; null: nothing. */
function differenceOf(
  call: EditorCall,
  theirs: Outcome,
  ours: { ok: boolean; text: string; file: string | null },
) {
  if (ours.file !== theirs.file) return 'the file';
  // Their window of lines fails an assertion after an edit that leaves no line, or one with a form feed; the edit is made.
  if (typeof theirs.code === 'string')
    return /AssertionError|empty separator/.test(theirs.code) && ours.ok ? null : theirs.code;
  if (ours.ok !== (theirs.code === 0)) return 'success';
  if (!ours.ok && !ERRORS[theirs.code]?.test(ours.text)) return `the error ${theirs.code}`;
  const compare = call.command === 'view' && call.path.endsWith('/..') ? entriesIn : shownIn;
  return JSON.stringify(compare(ours.text)) === JSON.stringify(compare(theirs.text))
    ? null
    : 'the observation';
}

describe.each(RUNTIMES)('on %s', (name) => {
  test('generated edits leave the same files and show the same', async ({ skip }) => {
    if (!CHECKOUT)
      skip(
        'there is no checkout of SWE-agent: git clone https://github.com/SWE-agent/SWE-agent, and set SWEFARM_TEST_SWE_AGENT to its folder',
      );
    await using machine = await openMachine(name);
    const image = await machine.runtime.ensureImage(machine.image, NEVER);
    await using container = await machine.runtime.start(spec(image, { limits: LIMITS }), NEVER);
    await using shell = await openShell(container, { activate: '' });
    const cases = editorCases(CASES, FOLDER);
    const theirs = await playReference(container, cases);
    const run: RunScript = (script, maxOutputBytes) =>
      shell.run(script, { timeoutMs: 60_000, maxOutputBytes, signal: NEVER });
    const fileAt = async (path: string): Promise<string | null> => {
      const { exitCode, head } = await run(
        `[ -f ${shellQuoted(path)} ] && base64 -w0 < ${shellQuoted(path)}`,
        4 * 1024 ** 2,
      );
      return exitCode === 0 ? head.toString() : null;
    };
    const differences: unknown[] = [];
    let edits = 0;
    for (const [number, { path, file, calls }] of cases.entries()) {
      const editor = new Editor({ workdir: '/testbed', verbatim: false, mostEntries: 1e6 });
      const folder = shellQuoted(path.slice(0, path.lastIndexOf('/')));
      await run(`mkdir -p ${folder}; printf %s ${file} | base64 -d > ${shellQuoted(path)}`, 1_000);
      for (const [at, call] of calls.entries()) {
        const outcome = theirs[number]?.[at];
        if (!outcome) throw new Error(`case ${number} has no outcome ${at}`);
        const done = await editor.call(call, run);
        const ours = { ...done, file: await fileAt(call.path) };
        if (call.command !== 'view') edits++;
        const difference = differenceOf(call, outcome, ours);
        if (difference !== null) differences.push({ number, at, difference, call, theirs: outcome, ours });
      }
    }
    expect(differences.slice(0, 3)).toEqual([]);
    expect(edits).toBeGreaterThan(300);
  });
});
