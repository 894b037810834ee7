/**
 * Changed gold patches on real instances and on our examples: compares verdict and status of every test with swebench 4.1.0.
 * node run.ts --python VENV/bin/python --dataset FILE [--dataset FILE] [--ids a,b] [--runtime docker]; the images must be there.
 * Exit code 1 on a difference. The official side (official.py) runs its own apply commands and eval.sh by docker exec, our side runs
 * through the farm.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';

type Tests = Record<string, { success: string[]; failure: string[] }>;
type Case = {
  name: string;
  patch: string;
  applied: string | null;
  report: { resolved: boolean; patch_successfully_applied: boolean; tests_status?: Tests } | null;
  statuses: Record<string, string> | null;
};
type Row = { instance_id: string };
/** `against`: the official side; `grader`: whose rules our side follows. */
type Official = { grader: string; against: string; cases: Case[] };
type Report = {
  resolved: boolean;
  applied_with: string | null;
  tests_status: Tests | null;
  status_map: Record<string, string> | null;
};

const SWEFARM = new URL('../../../../producer/bin/swefarm.mjs', import.meta.url).pathname;

const { values } = parseArgs({
  options: {
    python: { type: 'string' },
    dataset: { type: 'string', multiple: true },
    ids: { type: 'string' },
    runtime: { type: 'string', default: 'docker' },
  },
});
const { python, dataset, runtime } = values;
if (!python || !dataset)
  throw new Error(
    'run.ts --python VENV/bin/python --dataset FILE [--dataset FILE] [--ids a,b] [--runtime docker]',
  );

async function output(argv: readonly string[], stdin = ''): Promise<string> {
  const [program = '', ...args] = argv;
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(stdin);
  return await text(child.stdout);
}

async function ours(row: Row, { cases, grader }: Official, folder: string): Promise<(Report | null)[]> {
  const at = (name: string): string => join(folder, `${row.instance_id}.${name}`);
  await writeFile(at('row.jsonl'), `${JSON.stringify(row)}\n`);
  const predictions = cases.map(({ patch }) => ({
    instance_id: row.instance_id,
    model_name_or_path: 'm',
    model_patch: patch,
  }));
  await writeFile(at('patches.jsonl'), predictions.map((one) => `${JSON.stringify(one)}\n`).join(''));
  const state = ['--state-dir', join(folder, 'state')];
  const run = ['rollout', '--agent', 'patch', '--dataset', at('row.jsonl'), '--patches', at('patches.jsonl')];
  const rest = [
    '--group-size',
    String(cases.length),
    '--grader',
    grader,
    '--runtime',
    runtime,
    '--concurrency',
    '2',
    '--output',
    at('out.jsonl'),
  ];
  await output([process.execPath, SWEFARM, ...run, ...rest, ...state]);
  const reports: (Report | null)[] = [];
  for (const index of cases.keys()) {
    const shown = await output([
      process.execPath,
      SWEFARM,
      'show',
      `${at('out.jsonl')}#${row.instance_id}.${index}`,
      '--json',
      ...state,
    ]);
    reports.push((JSON.parse(shown) as { content: { report: Report } | null }).content?.report ?? null);
  }
  return reports;
}

const sorted = (tests: Tests | null | undefined): string =>
  JSON.stringify(
    Object.entries(tests ?? {}).map(([key, { success, failure }]) => [
      key,
      success.toSorted(),
      failure.toSorted(),
    ]),
  );
const entries = (map: Record<string, string> | null): string =>
  JSON.stringify(Object.entries(map ?? {}).sort());

/** Describes the differences; empty: none. */
function differences(official: Case, report: Report | null): string[] {
  if (!report) return ['ours has no report: the rollout failed before its patch was evaluated'];
  const { report: theirs, statuses } = official;
  const all: [string, unknown, unknown][] = [
    ['applied with', official.applied, report.applied_with],
    ['resolved', theirs?.resolved ?? false, report.resolved ?? false],
    ['tests', sorted(theirs?.tests_status), sorted(report.tests_status)],
    ['statuses', entries(statuses), entries(report.status_map)],
  ];
  return all.flatMap(([what, expected, found]) =>
    expected === found
      ? []
      : [`${what}: official ${String(expected).slice(0, 300)}, ours ${String(found).slice(0, 300)}`],
  );
}

const ids = values.ids?.split(',');
const texts = await Promise.all(dataset.map((file) => readFile(file, 'utf8')));
const rows = texts.flatMap((text) => text.split('\n').filter(Boolean)).map((line) => JSON.parse(line) as Row);
const chosen = rows.filter((row) => !ids || ids.includes(row.instance_id));
const folder = await mkdtemp(join(tmpdir(), 'swefarm-differential-'));
const script = new URL('./official.py', import.meta.url).pathname;
const passed = new Map<string, number>();
let failed = 0;
for (const row of chosen) {
  const official = JSON.parse(await output([python, script], `${JSON.stringify(row)}\n`)) as Official;
  const reports = await ours(row, official, folder);
  for (const [index, one] of official.cases.entries()) {
    const found = differences(one, reports[index] ?? null);
    if (found.length === 0) passed.set(official.against, (passed.get(official.against) ?? 0) + 1);
    else failed++;
    const verdict = one.report ? (one.report.resolved ? 'resolved' : 'unresolved') : 'not applied';
    console.log(
      `${found.length === 0 ? 'ok  ' : 'FAIL'} ${row.instance_id}: ${one.name} (${verdict}, ${one.applied ?? 'no patch'})`,
    );
    for (const line of found) console.log(`     ${line}`);
  }
}
await rm(folder, { recursive: true, force: true });
for (const [against, count] of passed) console.log(`${count} equal to ${against}`);
const total = [...passed.values()].reduce((sum, count) => sum + count, 0);
console.log(`${chosen.length} instances: ${total} passed, ${failed} failed`);
process.exitCode = failed > 0 || total === 0 ? 1 : 0;
