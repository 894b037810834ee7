/**
 * Compares our parsers, grading and eval scripts with the real swebench 4.1.0 and 5.0.2 on fixtures, on the corpus
 * if it is beside the repository, and on damaged logs. Run by hand: node grading/test/differential/run.ts
 * [--cases N] [--seed N] [--venvs DIR]. Needs python3 and a package index. Exit code 1 on an unexplained difference.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { Instance } from '@swefarm/shared';
import { parserNames, readLog } from '../../src/dialects/registry.ts';
import { ran } from '../../src/instance.fixture.ts';
import type { Dialect } from '../../src/parsers/reader.ts';
import { planEvaluation } from '../../src/plan/plan.ts';
import { gradeEvaluation } from '../../src/report/grade.ts';
import { officialReport } from '../../src/report/official.ts';
import { explained } from './explained.ts';
import { mutate, random } from './mutate.ts';

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '2500' },
    seed: { type: 'string', default: '1' },
    venvs: { type: 'string', default: join(tmpdir(), 'swefarm-differential') },
  },
});

type Version = '4.1.0' | '5.0.2';
type Base = { name: string; parser: string; version: string; log: string };
export type Case = {
  ask: 'read' | 'grade' | 'script';
  name: string;
  seed: number | null;
  parser: string;
  version: string;
  repo: string;
  instance_id: string;
  eval_type: 'pass_and_fail' | 'fail_only';
  FAIL_TO_PASS: string[];
  PASS_TO_PASS: string[];
  log: string;
  row?: Record<string, unknown>;
};
type Answer = { value?: unknown; raises?: string };

const FIXTURES = new URL('../../fixtures/', import.meta.url);
const SHARED = new URL('../../../../shared/', import.meta.url);

function bases(): Base[] {
  const found: Base[] = [];
  const fixtures = JSON.parse(readFileSync(new URL('expected.json', FIXTURES), 'utf8'));
  for (const [name, entry] of Object.entries<{ parser: string; version?: string; also?: string[] }>(
    fixtures,
  )) {
    const log = readFileSync(new URL(`${name}.log`, FIXTURES), 'utf8');
    for (const parser of [entry.parser, ...(entry.also ?? [])]) {
      found.push({ name, parser, version: entry.version ?? '1.0', log });
    }
  }
  const corpus = new URL('grading/corpus/', SHARED);
  if (existsSync(corpus)) {
    const expected = JSON.parse(readFileSync(new URL('expected.json', corpus), 'utf8'));
    for (const [name, entry] of Object.entries<{ family: string; log: string }>(expected)) {
      found.push({
        name,
        parser: entry.family,
        version: '1.0',
        log: readFileSync(new URL(entry.log, corpus), 'utf8'),
      });
    }
  }
  return found;
}

const NUMBERS: Record<string, string> = { jekyll: 'j__j-9141', immutable_js: 'i__i-2006' };

function readCase(base: Base, log: string, seed: number | null): Case {
  return {
    ask: 'read',
    name: base.name,
    seed,
    parser: base.parser,
    version: base.version,
    repo: 'own/repo',
    instance_id: NUMBERS[base.parser] ?? 'own__repo-1',
    eval_type: 'pass_and_fail',
    FAIL_TO_PASS: [],
    PASS_TO_PASS: [],
    log,
  };
}

/** The same log, mostly between markers, with tests of which some occur in it. */
function gradeCase(base: Case, next: () => number): Case {
  const names = ['a[b', 'none'];
  try {
    names.push(...readLog(base.parser, '5.0.2', base.log, instanceOf(base)).keys());
  } catch {
    // A log on which the harness raises is a case too.
  }
  const some = () =>
    Array.from({ length: 1 + Math.floor(next() * 4) }, () => names[Math.floor(next() * names.length)] ?? '');
  const cut = (name: string): string =>
    next() < 0.15 && name.includes('[') ? name.slice(0, name.indexOf('[') + 2) : name;
  const start = next() < 0.9 ? ">>>>> Start Test Output'\n" : '';
  const end = next() < 0.9 ? "\n+ : '>>>>> End Test Output'\n>>>>> Test Exit Code: " : '\n';
  return {
    ...base,
    ask: 'grade',
    eval_type: next() < 0.2 ? 'fail_only' : 'pass_and_fail',
    FAIL_TO_PASS: some().map(cut),
    PASS_TO_PASS: next() < 0.2 ? [] : some().map(cut),
    log: `+ : '${start}${base.log}${end}${Math.floor(next() * 2)}\n`,
  };
}

const instanceOf = (entry: Case): Instance =>
  Instance.parse({
    instance_id: entry.instance_id,
    repo: entry.repo,
    version: entry.version,
    base_commit: 'c0ffee',
    problem_statement: '',
    FAIL_TO_PASS: entry.FAIL_TO_PASS,
    PASS_TO_PASS: entry.PASS_TO_PASS,
    family: 'custom',
    image: 'none',
    test_cmd: 't',
    log_parser: entry.parser,
    eval_type: entry.eval_type,
  });

function ours(entry: Case, version: Version): Answer {
  try {
    if (entry.ask === 'read') {
      return {
        value: Object.fromEntries(readLog(entry.parser, version as Dialect, entry.log, instanceOf(entry))),
      };
    }
    if (entry.ask === 'script') return { value: scriptOf(entry) };
    const grader = version === '4.1.0' ? 'swebench-4.1.0' : 'swebench-5.0.2';
    const instance = instanceOf(entry);
    const facts = ran(entry.log, { applied_with: null });
    const report = gradeEvaluation(instance, planEvaluation(instance, grader), facts, 'diff');
    const official = officialReport(report, { log: entry.log, model: 'm', timeoutSeconds: 1800 });
    return official === null ? { raises: 'no report' } : { value: official };
  } catch (error) {
    if (error instanceof RangeError || error instanceof SyntaxError) return { raises: error.message };
    throw error;
  }
}

function scriptOf(entry: Case): string {
  const row = entry.row ?? {};
  const tests = (name: string): unknown =>
    typeof row[name] === 'string' ? JSON.parse(row[name] as string) : row[name];
  const instance = Instance.parse({
    ...row,
    FAIL_TO_PASS: tests('FAIL_TO_PASS'),
    PASS_TO_PASS: tests('PASS_TO_PASS'),
    family: 'swebench',
    image: 'none',
  });
  return planEvaluation(instance, 'swebench-4.1.0', { recordExitCode: false }).script;
}

function scriptCases(): Case[] {
  const found: Case[] = [];
  for (const file of ['lite-dev', 'lite-test', 'verified-mini50', 'verified-django5']) {
    const path = new URL(`rows/${file}.jsonl`, SHARED);
    if (!existsSync(path)) continue;
    for (const line of readFileSync(path, 'utf8').trim().split('\n')) {
      const row = JSON.parse(line) as Record<string, string>;
      const base = readCase(
        { name: row.instance_id ?? '', parser: 'pytest', version: '', log: '' },
        '',
        null,
      );
      found.push({ ...base, ask: 'script', row });
    }
  }
  return found;
}

/** Every repository and version of the table once, with artificial patches. */
function tableCases(): Case[] {
  const table = JSON.parse(readFileSync(new URL('../../data/specs.json', import.meta.url), 'utf8'));
  const patch = [
    'diff --git a/client/a/test/x.js b/client/a/test/x.js\n--- a/client/a/test/x.js\n+++ b/client/a/test/x.js\n@@ -1 +1,2 @@\n a\n+b',
    'diff --git a/tests/new_file.py b/tests/new_file.py\nnew file mode 100644\n--- /dev/null\n+++ b/tests/new_file.py\n@@ -0,0 +1 @@\n+x',
    'diff --git a/test/e2e/y.js b/test/e2e/y.js\n--- a/test/e2e/y.js\n+++ b/test/e2e/y.js\n@@ -1 +0,0 @@\n-a',
  ].join('\n');
  const found: Case[] = [];
  for (const [repo, entry] of Object.entries<{ recipes: { versions: string[] }[] }>(table.swebench)) {
    for (const version of entry.recipes.flatMap((recipe) => recipe.versions)) {
      const row = {
        instance_id: 'own__repo-1',
        repo,
        version,
        base_commit: 'c0ffee',
        problem_statement: '',
        test_patch: patch,
        FAIL_TO_PASS: ['a'],
        PASS_TO_PASS: [],
      };
      const base = readCase({ name: `${repo}@${version}`, parser: 'pytest', version: '', log: '' }, '', null);
      found.push({ ...base, ask: 'script', row });
    }
  }
  return found;
}

function theirs(cases: Case[], version: Version): Answer[] {
  const venv = join(values.venvs, version);
  const python = join(venv, 'bin', 'python');
  if (!existsSync(python)) {
    mkdirSync(values.venvs, { recursive: true });
    execFileSync('python3', ['-m', 'venv', venv], { stdio: 'inherit' });
    execFileSync(python, ['-m', 'pip', 'install', '-q', `swebench==${version}`], { stdio: 'inherit' });
  }
  const script = new URL('harness.py', import.meta.url).pathname;
  const run = spawnSync(python, [script], {
    input: cases.map((entry) => JSON.stringify(entry)).join('\n'),
    maxBuffer: 2 ** 30,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const answers = run.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Answer);
  if (answers.length !== cases.length)
    throw new Error(`${version}: ${answers.length} answers to ${cases.length} cases`);
  return answers;
}

const same = (a: Answer, b: Answer): boolean =>
  a.raises !== undefined || b.raises !== undefined
    ? (a.raises !== undefined) === (b.raises !== undefined)
    : isDeepStrictEqual(a.value, b.value);

function cases(version: Version): Case[] {
  const known = new Set(parserNames(version));
  const usable = bases().filter((base) => known.has(base.parser));
  const found = usable.map((base) => readCase(base, base.log, null));
  const first = Number(values.seed);
  for (let at = 0; at < Number(values.cases); at++) {
    const next = random(first + at);
    const base = usable[Math.floor(next() * usable.length)];
    if (!base) break;
    const damaged = readCase(base, mutate(base.log, next), first + at);
    found.push(at % 2 === 0 ? damaged : gradeCase(damaged, next));
  }
  return version === '4.1.0' ? [...found, ...scriptCases(), ...tableCases()] : found;
}

let unexplained = 0;
for (const version of ['4.1.0', '5.0.2'] as const) {
  const asked = cases(version);
  const answers = theirs(asked, version);
  const reasons = new Map<string, number>();
  for (const [at, entry] of asked.entries()) {
    const answer = answers[at] ?? {};
    const own = ours(entry, version);
    if (same(own, answer)) continue;
    const reason = explained(entry, version, own, answer);
    if (reason !== null) {
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      continue;
    }
    unexplained++;
    if (unexplained <= 20) report(entry, version, own, answer);
  }
  console.log(
    `${version}: ${asked.length} cases from seed ${values.seed}; explained: ${JSON.stringify(Object.fromEntries(reasons))}`,
  );
}
console.log(unexplained === 0 ? 'no unexplained difference' : `${unexplained} unexplained differences`);
process.exitCode = unexplained === 0 ? 0 : 1;

function report(entry: Case, version: Version, own: Answer, answer: Answer): void {
  console.log(`\n${version} ${entry.ask} ${entry.parser} ${entry.name} seed ${entry.seed}`);
  const [a, b] = [own.value ?? own, answer.value ?? answer];
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    const lines = [a, b].map((side) =>
      typeof side === 'string' ? side.split('\n') : [JSON.stringify(side)],
    );
    const at = (lines[0] ?? []).findIndex((line, index) => line !== lines[1]?.[index]);
    console.log(`line ${at + 1}\nours:   ${lines[0]?.[at]}\ntheirs: ${lines[1]?.[at]}`);
    return;
  }
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const [one, two] = [(a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]];
    if (!isDeepStrictEqual(one, two))
      console.log(JSON.stringify({ key, ours: one, theirs: two }).slice(0, 1200));
  }
}
