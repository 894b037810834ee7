import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OutcomeSource, type ProgramSource } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, test } from 'vitest';
import { liveProgram, multiSweProgram, proProgram } from './programs.ts';

let folder: string;
beforeEach(() => {
  folder = temporaryFolder('programs');
});

/** Runs the program of a source on this machine, with all its paths moved into a temporary folder. */
function run(
  source: ProgramSource,
  inputs: Record<string, string>,
): { exit: number | null; outcomes: unknown; output: string } {
  const at = (path: string): string => join(folder, path.replaceAll('/', '_'));
  for (const [path, content] of Object.entries({ ...source.files, ...inputs }))
    writeFileSync(at(path), content);
  const argv = source.argv.map((word) => (/^\/(program|inputs|outcomes)/.test(word) ? at(word) : word));
  const { status, stdout, stderr } = spawnSync(argv[0] ?? '', argv.slice(1), { encoding: 'utf8' });
  const output = at(source.output ?? '');
  const outcomes = existsSync(output) ? JSON.parse(readFileSync(output, 'utf8')) : null;
  return { exit: status, outcomes, output: stdout + stderr };
}

const LOG = 'one ok\r\ntwo bad \u00e9\n';
const READS = `
import re
WORDS = {"ok": "pass", "bad": "fail"}
def status(word):
    return WORDS[word]
def parser(log: str) -> dict[str, str]:
    print("chatter", len(log))
    return {m[1]: status(m[2]) for m in re.finditer(r"^(\\w+) (\\w+)", log, re.M)}
`;

test('a Live parser runs with its own helpers and imports; its output is no outcome', () => {
  const { exit, outcomes, output } = run(liveProgram(READS), { '/inputs/log': LOG });
  expect({ exit, outcomes }).toEqual({ exit: 0, outcomes: { one: 'pass', two: 'fail' } });
  expect(output).toContain(`chatter ${LOG.length}`);
});

test.each([
  [
    'raises',
    'def parser(log):\n    raise ValueError("cannot read " + log[:3])',
    'ValueError: cannot read one',
  ],
  ['is no Python', 'def parser(log) {}', 'SyntaxError'],
  ['defines nothing', 'x = 1', "KeyError: 'parser'"],
])('a Live parser that %s leaves no outcomes and prints the reason', (_what, source, why) => {
  const { exit, outcomes, output } = run(liveProgram(source), { '/inputs/log': LOG });
  expect({ exit, outcomes }).toEqual({ exit: 1, outcomes: null });
  expect(output).toContain(why);
});

test('a Live parser without a return value finds no tests', () => {
  expect(run(liveProgram('def parser(log): return None'), { '/inputs/log': LOG }).outcomes).toEqual({});
});

test('a Pro parser gets both outputs of the tests and names its own output', () => {
  const source = `
import json, sys
out, err, target = (open(sys.argv[1]).read(), open(sys.argv[2]).read(), sys.argv[3])
json.dump({"tests": [{"name": out.strip(), "status": "PASSED"}, {"name": err.strip(), "status": "FAILED"}]}, open(target, "w"))
`;
  const { outcomes } = run(proProgram(source), { '/inputs/stdout.log': 'a\n', '/inputs/stderr.log': 'b\n' });
  expect(outcomes).toEqual({
    tests: [
      { name: 'a', status: 'PASSED' },
      { name: 'b', status: 'FAILED' },
    ],
  });
});

test('the programs fit into a record and are valid Python', () => {
  const task = { org: 'o', repo: 'r', number: 7, tag: '1.2' };
  for (const source of [liveProgram(READS), proProgram(READS), multiSweProgram(task)]) {
    expect(OutcomeSource.parse(source)).toEqual(source);
    for (const [path, text] of Object.entries(source.files)) {
      if (path.endsWith('.py'))
        execFileSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], { input: text });
    }
  }
  expect(JSON.parse(multiSweProgram(task).files['/program/task.json'] ?? '')).toEqual({
    ...task,
    number_interval: '',
  });
});
