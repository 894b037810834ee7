/**
 * The parser image that examples/parserimage/folder.sh makes, with the package of Multi-SWE from PyPI, parses logs as upstream does. The
 * tests use upstream's answers if their files are beside the repository, else only a log of our own.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { liveProgram, multiSweProgram } from '@swefarm/grading';
import type { ReadyImage, Runtime } from '@swefarm/sandbox';
import { createRemovals } from '@swefarm/sandbox';
import { NEVER, spec } from '@swefarm/sandbox/test/subject.ts';
import { type ProgramSource, parseProgramOutput } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROGRAM_LIMITS, runProgram } from '../../src/evaluation/program.ts';
import { rootfsIn } from './evaluator.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const FAMILIES = join(ROOT, '../shared/grading/families');

let folder: string;
let runtime: Runtime;
let image: ReadyImage;
const removals = createRemovals();
beforeAll(async () => {
  folder = temporaryFolder('parsers');
  const tree = join(folder, 'image');
  execFileSync('sh', [join(ROOT, 'examples/parserimage/folder.sh'), tree], { stdio: 'pipe' });
  runtime = await rootfsIn(folder);
  image = await runtime.ensureImage(`host+dir:${tree}`, NEVER);
}, 600_000);
afterAll(async () => {
  await removals.finished();
  await runtime?.[Symbol.asyncDispose]();
});

/** Test → status, or the reason why there is none. */
async function read(source: ProgramSource, log: string): Promise<Record<string, string> | string> {
  const limits = spec(image, { role: 'evaluation', limits: PROGRAM_LIMITS, workdir: '/' });
  const startProgram = () => runtime.start(limits, NEVER);
  const inputs = { log: Buffer.from(log), files: {} };
  const ended = await runProgram(source, inputs, { startProgram, removals, runtime, signal: NEVER });
  if ('failed' in ended) return ended.failed;
  const parsed = parseProgramOutput(ended.output, source.form);
  return 'problem' in parsed ? parsed.problem : Object.fromEntries(parsed.tests);
}

const GO = '--- PASS: TestAdd (0.00s)\n--- FAIL: TestSub (0.01s)\n';

test('the package of Multi-SWE reads a log in a container without network', async () => {
  const task = { org: 'cli', repo: 'cli', number: 1 };
  expect(await read(multiSweProgram(task), GO)).toEqual({ TestAdd: 'PASS', TestSub: 'FAIL' });
  const unknown = await read(multiSweProgram({ ...task, org: 'nobody' }), GO);
  expect(unknown).toMatch(/exit code 1: ValueError: Instance 'nobody\/cli' is not registered/);
});

type Answer = { status: Record<string, string> } | { error: string } | { error_text: true };
type Entry = { case: string; parser: string; log: string; rows: Record<string, unknown>; expected: Answer };

const CORPORA: [file: string, is: (entry: Entry) => boolean, program: (rows: never) => ProgramSource][] = [
  ['multi-swe-bench', ({ parser }) => parser.includes('/'), multiSweProgram],
  [
    'swe-bench-live',
    ({ parser }) => parser.startsWith('python-source'),
    (rows: { log_parser: string }) => liveProgram(rows.log_parser),
  ],
];

test.each(CORPORA)('%s: every answer equals upstream’s', async (file, is, program) => {
  const path = join(FAMILIES, `${file}.jsonl`);
  if (!existsSync(path)) return void console.log(`${file}: its corpus does not lie beside the repository`);
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean);
  const entries = lines.map((line) => JSON.parse(line) as Entry).filter(is);
  const different: string[] = [];
  const next = async (): Promise<void> => {
    for (let entry = entries.pop(); entry; entry = entries.pop()) {
      const { expected, log, rows } = entry;
      const got = await read(program(rows as never), log);
      if ('status' in expected ? !equal(got, expected.status) : typeof got !== 'string')
        different.push(entry.case);
    }
  };
  const count = entries.length;
  await Promise.all([next(), next(), next()]);
  console.log(`${file}: ${count - different.length} of ${count} equal`);
  expect(different).toEqual([]);
});

const sorted = (map: Record<string, string>) => JSON.stringify(Object.entries(map).toSorted());
const equal = (got: Record<string, string> | string, wanted: Record<string, string>): boolean =>
  typeof got !== 'string' && sorted(got) === sorted(wanted);
