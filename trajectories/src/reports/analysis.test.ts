import { expect, test } from 'vitest';
import { aLine } from '../../test/result.ts';
import { profileOf } from '../output/profile.ts';
import { analyse, binsOf } from './analysis.ts';
import { renderMarkdown, renderPage } from './document.ts';
import { factOf, repositoryOf } from './facts.ts';
import { cutTables } from './figures.ts';

const fact = (id: string, index: number, resolved: boolean, more: Record<string, unknown> = {}) => ({
  ...factOf({
    ...aLine({ instance_id: id, rollout_id: `r.${id}.${index}`, resolved, turns: 10 * (index + 1) }),
    cost: 0.5,
    tag: index === 0 ? 'cold' : 'hot',
    ...more,
  }),
});
const FACTS = [
  fact('a__b-1', 0, true),
  fact('a__b-1', 1, false),
  fact('x__y-2', 0, false),
  fact('x__y-2', 1, false),
];
const OPTIONS = { resamples: 100, seed: 1 };

test('cost per rollout and success, difficulty by share of resolved rollouts, and sets', () => {
  const analysis = analyse(FACTS, [1, 2], OPTIONS);
  expect(analysis.costs).toEqual({ total: 2, rollouts: 4, per_rollout: 0.5, per_success: 2 });
  expect(Object.keys(analysis.difficulty)).toEqual(['1 never resolved', '3 from 25 to 75 %']);
  expect(analysis.sets).toMatchObject({ cold: { resolved: 1, judged: 2 }, hot: { resolved: 0, judged: 2 } });
  expect(analysis.repositories['a/b']).toMatchObject({ instances: 1, largest: { k: 2, pass: { value: 1 } } });
  expect(analysis.accuracy_interval?.value).toBe(0.25);
  expect(analyse([], [1], OPTIONS)).toMatchObject({ accuracy_interval: null, scaling: [], costs: null });
});

test('each family has its counts; a rollout that no worker began has the family of its siblings', () => {
  const { families } = analyse(
    [
      fact('a__b-1', 0, true, { family: 'r2e-gym' }),
      fact('a__b-1', 1, false, { outcome: 'cancelled' }),
      fact('c__d-1', 0, false, { family: 'swesmith', resolved: null, reward: 0.25 }),
      fact('x__y-2', 0, false),
    ],
    [1],
    OPTIONS,
  );
  expect(families).toMatchObject({
    'r2e-gym': { total: 2, judged: 1, resolved: 1, accuracy: 1, mean_reward: 1 },
    swesmith: { judged: 1, scored: 1, accuracy: null, mean_reward: 0.25 },
    unknown: { judged: 1, resolved: 0 },
  });
  const report = { expected: null, ...profileOf([]), analysis: analyse(FACTS, [1], OPTIONS) };
  expect(report.analysis.families, 'outputs of earlier versions').toEqual({});
  expect(renderMarkdown(report, 't')).not.toContain('By family');
  const told = { ...report, analysis: { ...report.analysis, families } };
  expect(renderMarkdown(told, 't')).toContain('| r2e-gym | 1 | 1 | 1/2 | 100.0 % | 1.000 |');
  expect(renderPage(told, 't')).toContain('Resolved, by family');
});

test('components are grouped by family; a score alone has no difficulty', () => {
  const scored = { family: 'custom', resolved: null };
  const facts = [
    fact('a__b-1', 0, true, { family: 'swesmith' }),
    fact('c__d-1', 0, false, { ...scored, reward: 0.5, reward_components: { tests: 0.25, style: 1 } }),
    fact('c__d-1', 1, false, { ...scored, reward: 0.75, reward_components: { tests: 0.75 } }),
    fact('c__d-1', 2, false, { family: 'custom', reward: 0 }),
  ];
  const analysis = analyse(facts, [1], OPTIONS);
  expect(analysis.components).toMatchObject({
    custom: { tests: { rollouts: 2, mean: 0.5 }, style: { rollouts: 1, mean: 1 } },
  });
  expect(Object.keys(analysis.components.custom ?? {})).toEqual(['tests', 'style']);
  expect(Object.keys(analysis.difficulty)).toEqual(['5 always resolved']);
  const text = renderMarkdown({ expected: null, ...profileOf(facts), analysis }, 't');
  expect(text).toContain('| custom | tests | 2 | 0.500 | 0.250 | 0.250 | 0.750 |');
  expect(text).toMatch(/\| custom \| 1 \| 0 \| 3\/3 \| 2 \|/);
  expect(renderPage({ expected: null, ...profileOf(facts), analysis }, 't')).toContain(
    'Components of rewards',
  );
  expect(analyse(FACTS, [1], OPTIONS).components).toEqual({});
});

const FIX = '0123456789'.repeat(4);
test.each([
  ['pallets__flask-5063', undefined, 'pallets/flask'],
  ['tj__commander.js.83c3f4e3.func_pm__a1', 'swesmith', 'tj/commander.js'],
  [`instance_flipt-io__flipt-${FIX}-vnan`, 'swe-bench-pro', 'flipt-io/flipt'],
  [`instance_internetarchive__openlibrary-${FIX}-v${FIX}`, 'swe-bench-pro', 'internetarchive/openlibrary'],
  [`aiohttp-${FIX}`, 'r2e-gym', 'aiohttp'],
  [`aio-libs__aiohttp-${FIX}`, 'r2e-gym', 'aio-libs/aiohttp'],
  ['r1chardj0n3s_parse_pr73', 'scale-swe', 'r1chardj0n3s/parse'],
  ['dask_dask_image_pr9', 'scale-swe', 'dask/dask_image'],
  ['cli__cli-7', 'multi-swe', 'cli/cli'],
  ['x__foo-2.0-7', undefined, 'x/foo-2.0'],
  ['anything', undefined, 'unknown'],
])('the repository of %s of %s is %s', (id, family, repository) => {
  expect(repositoryOf(id, family)).toBe(repository);
});

test('every form of a report has distributions of repositories, exits, turns, tokens and cost', () => {
  const analysis = analyse(FACTS, [1, 2], OPTIONS);
  const { distributions } = analysis;
  expect(distributions.repositories).toEqual({ 'a/b': 2, 'x/y': 2 });
  expect(distributions.spreads.turns).toEqual({ least: 10, q1: 10, median: 10, q3: 20, most: 20 });
  expect(distributions.spreads.cost).toMatchObject({ least: 0.5, most: 0.5 });
  const report = { expected: null, ...profileOf(FACTS), analysis };
  const markdown = renderMarkdown(report, 't');
  expect(markdown).toContain('| turns of judged rollouts | 10 | 10 | 10 | 20 | 20 |');
  expect(markdown).toMatch(/## Why agents stopped.*\| submitted \| 4 \| 100\.0 % \|/s);
  const page = renderPage(report, 't');
  for (const title of [
    'Rollouts, by repository',
    'Turns of judged rollouts',
    'Tokens of judged rollouts',
    'Cost of rollouts in US dollars',
  ]) {
    expect(page).toContain(`<figcaption>${title}</figcaption>`);
  }
});

test('the gap to the oracle has an interval for each repository and difficulty', () => {
  const scored = FACTS.map((one, at) => ({ ...one, score: at === 1 ? 0.9 : 0.1 }));
  const analysis = analyse(scored, [1, 2], OPTIONS);
  // In a/b, the verifier prefers the unresolved one of two rollouts; in x/y, no choice would be a success.
  expect(analysis.repositories['a/b']?.largest).toMatchObject({
    k: 2,
    best: { value: 0 },
    gap: { value: 1, low: 1, high: 1 },
  });
  expect(analysis.difficulty['1 never resolved']?.largest).toMatchObject({ gap: { value: 0 } });
  const report = { expected: null, ...profileOf(scored), analysis };
  expect(renderMarkdown(report, 't')).toMatch(
    /\| a\/b \|.*\| 0\.0 % \(0\.0–0\.0\) \| 100\.0 % \(100\.0–100\.0\) \| 15\.0 \|/,
  );
  expect(renderPage(report, 't')).toContain('Gap to the oracle, by repository');
});

test('bins have round borders and include every value', () => {
  expect(binsOf([])).toEqual([]);
  expect(binsOf([5, 5])).toEqual([{ from: 5, to: 6, count: 2 }]);
  const bins = binsOf([0, 3, 99, 100]);
  expect(bins[0]).toEqual({ from: 0, to: 10, count: 2 });
  expect(bins.at(-1)).toEqual({ from: 100, to: 110, count: 1 });
  expect(bins.reduce((sum, { count }) => sum + count, 0)).toBe(4);
});

test('foreign names are escaped in Markdown and on the page', () => {
  const facts = [fact('<script>alert(1)</script>|x__"y-1', 0, true)];
  const report = { expected: null, ...profileOf(facts), analysis: analyse(facts, [1], OPTIONS) };
  expect(renderPage(report, 'a "page" <b>')).not.toMatch(/<script|<b>/);
  expect(renderMarkdown(report, 't')).toContain('\\|');
});

test('agents that came as programs have a table of what was recorded of them', () => {
  const agent = (lines: number, masked: Record<string, number>) => ({
    ...{ name: 'codex', version: '0.169', card: 'c', digest: null, exit_code: 0, lines, masked },
    ...{ requests: 4, whole: 1, repeated: 1, repaired: 0, refused: 0 },
  });
  const ran = [
    fact('a__b-1', 0, true, { agent: agent(1, {}) }),
    fact('a__b-1', 1, false, { agent: agent(3, { abandoned: 2, side: 1 }) }),
    fact('x__y-2', 0, false),
  ];
  const analysis = analyse(ran, [1], OPTIONS);
  expect(analysis.agents).toMatchObject({
    'codex 0.169': {
      ...{ total: 2, resolved: 1 },
      recorded: { lines: 4, turns: 30, masked_turns: 3, requests: 8, whole: 2, repeated: 2 },
    },
  });
  expect(analyse(FACTS, [1], OPTIONS).agents).toEqual({});
  const table = cutTables(analysis).find(({ title }) => title === 'Agents that came as programs');
  expect(table?.rows).toEqual([['codex 0.169', '2', '1', '4', '30', '3', '8', '2', '2', '0', '0']]);
  expect(table?.columns).toHaveLength(11);
});
