/** Runs the commands of docs/workflows.md unchanged, and compares figures with values that were counted by hand. */
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { run } from '../../src/launchers/run.ts';
import { readLines, writeLines } from '../../src/lines.ts';
import { listen } from '../../src/listen.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { openScene } from './scene.ts';
import { gymRow, script, smithRow } from './workflowinstances.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const stack = new AsyncDisposableStack();
const { folder, env } = openScene();
let sections: Map<string, string>;

beforeAll(async () => {
  const bin = join(folder, 'bin');
  await mkdir(bin);
  await symlink(join(ROOT, 'producer/bin/swefarm.mjs'), join(bin, 'swefarm'));
  // The policy reports token counts, which `--max-tokens` uses.
  const policy = stack.use(await startScriptedPolicy({ script: script() }));
  Object.assign(env, {
    PATH: `${bin}:${process.env.PATH ?? ''}`,
    HOME: folder,
    LANG: 'C.UTF-8',
    POLICY_URL: policy.url,
    VERIFIER_URL: await openVerifier(),
    SWEFARM_RUNTIME: 'rootfs',
    SWEFARM_CONCURRENCY: '2',
  });
  sections = sectionsOf(await readFile(join(ROOT, 'docs/workflows.md'), 'utf8'));
  await writeDatasets();
});
afterAll(() => stack.disposeAsync());

/** Returns the commands of each section, in the order of the page. */
function sectionsOf(page: string): Map<string, string> {
  const parts = page.split(/^## /m).slice(1);
  return new Map(
    parts.map((part) => [
      part.slice(0, part.indexOf('.')),
      [...part.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands]) => commands).join(''),
    ]),
  );
}

async function writeDatasets(): Promise<void> {
  const trees = join(folder, 'trees');
  const rows = {
    'swe-gym.jsonl': [
      await gymRow(trees, 'getmoto/moto', 'getmoto__moto-1001'),
      await gymRow(trees, 'python/mypy', 'python__mypy-1002'),
    ],
    'swe-bench.jsonl': [
      await gymRow(trees, 'pallets/flask', 'pallets__flask-1'),
      await gymRow(trees, 'psf/requests', 'psf__requests-2'),
      await gymRow(trees, 'pylint-dev/pylint', 'pylint-dev__pylint-3'),
    ],
    'swe-smith.jsonl': await smithRows(trees),
  };
  for (const [name, own] of Object.entries(rows)) await writeLines(join(folder, name), own);
}

/** Makes two rows that can be run, one with too many tests, and one of a project without a SWE-smith profile. */
async function smithRows(trees: string): Promise<object[]> {
  const project = 'r1chardj0n3s__parse.30da9e4f';
  const [one, two] = [
    await smithRow(trees, project, 'func_basic__one00001'),
    await smithRow(trees, project, 'func_basic__two00001'),
  ];
  const many = Array.from({ length: 6 }, (_, at) => `tests/test_calc.py::test_${at}`);
  return [
    { ...one, instance_id: `${project}.func_basic__many0001`, FAIL_TO_PASS: many },
    one,
    { ...one, instance_id: 'no__body.00000000.func_basic__x', repo: 'swesmith/no__body.00000000' },
    two,
  ];
}

/** Starts a verifier that answers yes with the probability in the patch (`# p 0.9`). Returns its URL. */
async function openVerifier(): Promise<string> {
  const server = createServer(async (request, response) => {
    const asked = await text(request);
    const output = [...asked.matchAll(/# p (0\.\d)/g)].at(-1)?.[1];
    const yes = Number(output);
    const top = [
      { token: 'YES', logprob: Math.log(yes) },
      { token: 'NO', logprob: Math.log(1 - yes) },
    ];
    response.end(JSON.stringify({ choices: [{ logprobs: { content: [{ top_logprobs: top }] } }] }));
  });
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${await listen(server)}/v1`;
}

/** Runs the commands of a section, which must all succeed. Returns their standard error. */
async function follow(section: string): Promise<string> {
  const commands = sections.get(section);
  if (!commands) throw new Error(`docs/workflows.md has no commands in section ${section}`);
  const { stderr } = await run('bash', ['--norc', '-euo', 'pipefail', '-c', commands], { cwd: folder, env });
  return stderr;
}

type Row = Record<string, unknown> & { instance_id: string };
const linesOf = (name: string): Promise<Row[]> => readLines(join(folder, name));

test('the page has four sections with commands', () => {
  expect([...sections].map(([name, commands]) => [name, commands !== ''])).toEqual(
    ['1', '2', '3', '4'].map((name) => [name, true]),
  );
});

test('1: two temperatures are two runs; the fine-tuning set has a limited size', async () => {
  const output = await follow('1');
  for (const [tag, temperature] of [
    ['t05', 0.5],
    ['t10', 1],
  ] as const) {
    const lines = await linesOf(`gym.${tag}.jsonl`);
    // Three of four rollouts of the first instance resolve, and two of four of the second.
    expect(lines.filter(({ resolved }) => resolved === true)).toHaveLength(5);
    expect(lines).toHaveLength(8);
    const { record } = JSON.parse(await readFile(join(folder, `gym.${tag}.jsonl.run.json`), 'utf8'));
    expect(record.policy.sampling.temperature).toBe(temperature);
  }
  // Of 16 rollouts, six are not resolved and two are too long. Each other patch occurs twice, and one instance has three patches. Five
  // more are dropped; the order in which rollouts ended decides how many of them are a third patch.
  expect(output).toContain('6 not resolved, 2 over 32768 tokens');
  const [, twice = '', third = ''] =
    /, (\d) with a patch that another one has, (\d) over 2 per instance/.exec(output) ?? [];
  expect(Number(twice) + Number(third), output).toBe(5);
  const rows = await linesOf('sft.jsonl');
  expect(rows.map(({ instance_id }) => instance_id).toSorted()).toEqual([
    ...['getmoto__moto-1001', 'getmoto__moto-1001', 'python__mypy-1002'],
  ]);
  for (const row of rows) expect(row).toMatchObject({ resolved: true, model: 'teacher' });
  const [{ swefarm: origin } = { swefarm: null }] = rows;
  expect(origin).toMatchObject({ licence: 'MIT', tag: expect.stringMatching(/^t(05|10)$/) });
});

test("2: an expert's trajectories are evaluated again, and only resolved ones become ft_xml", async () => {
  await follow('2');
  const subset = await linesOf('subset.jsonl');
  const ids = subset.map(({ instance_id }) => instance_id).toSorted();
  expect(ids).toEqual([
    'r1chardj0n3s__parse.30da9e4f.func_basic__one00001',
    'r1chardj0n3s__parse.30da9e4f.func_basic__two00001',
  ]);
  const experts = await linesOf('experts.jsonl');
  expect(experts.map(({ resolved }) => resolved).toSorted()).toEqual([false, false, true, true]);
  const report = JSON.parse(await readFile(join(folder, 'expert.experts.json'), 'utf8'));
  expect(report).toMatchObject({ submitted_instances: 2, completed_instances: 2 });
  const rows = await linesOf('ft_xml_experts.jsonl');
  expect(rows.map(({ instance_id }) => instance_id).toSorted()).toEqual(ids);
  for (const row of rows) {
    expect(row).toMatchObject({ resolved: true, model: 'expert' });
    expect(JSON.stringify(row.messages)).toMatch(/<function=bash>.*<function=submit>/s);
  }
});

test('3: parts of a verifier set share no instance; the training part is even', async () => {
  const output = await follow('3');
  const [train, val] = [await linesOf('verifier.train.jsonl'), await linesOf('verifier.val.jsonl')];
  const idsOf = (rows: Row[]) => [...new Set(rows.map(({ instance_id }) => instance_id))];
  expect([idsOf(train), idsOf(val)]).toEqual([['getmoto__moto-1001'], ['python__mypy-1002']]);
  // Six of eight rollouts are resolved. Two of these remain, with the two others.
  expect(train.map(({ success }) => success).toSorted()).toEqual([0, 0, 1, 1]);
  expect(output).toContain('4 beyond the balance');
  expect(val.map(({ success }) => success).toSorted()).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
});

test('4: pass@k, best@k and the gap equal the values counted by hand', async () => {
  await follow('4');
  const report = JSON.parse(await readFile(join(folder, 'k4.report.json'), 'utf8'));
  // Flask: the verifier rates the only good rollout highest. Requests: it rates a bad one above two good ones. Pylint: none is good.
  const pass = { 1: (1 / 4 + 2 / 4 + 0) / 3, 2: (3 / 6 + 5 / 6 + 0) / 3, 4: (1 + 1 + 0) / 3 };
  // Requests, best of two: three of six pairs have the bad rollout with the highest score; in the other three a good rollout is best.
  const best = { 1: (1 / 4 + 2 / 4 + 0) / 3, 2: (3 / 6 + 3 / 6 + 0) / 3, 4: (1 + 0 + 0) / 3 };
  for (const [at, k] of ([1, 2, 4] as const).entries()) {
    const found = report.scaling[at];
    expect(found).toMatchObject({ k, instances: 3, unscored: 0 });
    expect(found.pass.value).toBeCloseTo(pass[k], 10);
    expect(found.best.value).toBeCloseTo(best[k], 10);
    expect(found.gap.value).toBeCloseTo(pass[k] - best[k], 10);
    expect(found.gap.low).toBeLessThanOrEqual(found.gap.value);
    expect(found.gap.high).toBeGreaterThanOrEqual(found.gap.value);
  }
  const chosen = await linesOf('best.jsonl');
  expect(
    Object.fromEntries(
      chosen.map(({ instance_id, rollout_index, resolved }) => [instance_id, [rollout_index, resolved]]),
    ),
  ).toEqual({
    'pallets__flask-1': [0, true],
    'psf__requests-2': [0, false],
    'pylint-dev__pylint-3': [0, false],
  });
  expect(await readFile(join(folder, 'k4.html'), 'utf8')).toMatch(/best@4/);
});
