import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { MetricDefinition } from './definition.ts';
import { LIVE_METRICS } from './live.ts';
import { OUTCOME_METRICS } from './outcomes.ts';
import { metricsPage } from './table.ts';
import { outcomeFamilies, versionFamilies } from './totals.ts';
import { vitalFamilies } from './vitals.ts';
import { WORKER_METRICS } from './worker.ts';

const ALL: MetricDefinition[] = [OUTCOME_METRICS, LIVE_METRICS, WORKER_METRICS].flatMap(Object.values);
const VITALS = {
  queue: [],
  jobs: { active: 0, delayed: 0, failed: 0 },
  unreadable_results: 0,
  workers: { claiming: 0, paused: 0, busy: 0, slots: 0, lost: 0 },
  redis: { seconds: 0, used_bytes: 0, limit_bytes: 0, clients: 0 },
  artifacts: { used_bytes: 0, budget_bytes: 0, artifacts: 0 },
  policies: [],
  endpoints: [],
  loads: [],
  admissions: [],
};

test('docs/metrics.md is current (npm run docs:metrics)', () => {
  const page = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8');
  expect(page).toBe(metricsPage());
});

test('names are unique and follow the conventions of Prometheus', () => {
  expect(new Set(ALL.map(({ name }) => name)).size).toBe(ALL.length);
  for (const { name, type, unit, help, buckets } of ALL) {
    expect(name, name).toMatch(/^swefarm_[a-z][a-z_]*[a-z]$/);
    expect(name.endsWith('_total'), `${name}: only counters end in _total`).toBe(type === 'counter');
    if (unit === 'seconds' || unit === 'bytes') expect(name).toMatch(new RegExp(`_${unit}(_total)?$`));
    expect(help, name).toMatch(/\.$/);
    expect(buckets !== undefined, `${name}: buckets are for histograms`).toBe(type === 'histogram');
  }
});

test('the gateway exposes every metric that is defined for it', () => {
  const exposed = [...outcomeFamilies(new Map()), ...versionFamilies(new Map()), ...vitalFamilies(VITALS)];
  // The gateway counts escaped errors in its own process.
  const names = new Set([...exposed.map(({ definition }) => definition.name), LIVE_METRICS.escaped.name]);
  const defined: MetricDefinition[] = [OUTCOME_METRICS, LIVE_METRICS].flatMap(Object.values);
  expect(defined.map(({ name }) => name).filter((name) => !names.has(name))).toEqual([]);
});

test('no label contains an instance, rollout or run', () => {
  const labels = new Set(ALL.flatMap((one) => one.labels));
  for (const label of labels) expect(label).not.toMatch(/instance|rollout|run_id|repo|image|worker/);
});
