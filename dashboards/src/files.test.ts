import { readFileSync } from 'node:fs';
import { LIVE_METRICS, type MetricDefinition, OUTCOME_METRICS, WORKER_METRICS } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ALERTS } from './alerts.ts';
import { DASHBOARDS, generatedFiles } from './files.ts';
import { grafanaDashboard } from './grafana.ts';
import { panelPath } from './prometheus.ts';
import { RULES } from './rules.ts';

const METRICS: MetricDefinition[] = [OUTCOME_METRICS, LIVE_METRICS, WORKER_METRICS].flatMap(Object.values);
const panels = DASHBOARDS.flatMap((dashboard) => dashboard.rows.flatMap((row) => row.panels));

test.each([...generatedFiles()])('%s is what the definitions say (npm run dashboards)', (path, text) => {
  expect(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')).toBe(text);
});

test('every metric that is defined is seen on a dashboard, and no query names another', () => {
  const queries = panels.flatMap((panel) => panel.queries.map(({ expr }) => expr)).join('\n');
  const named = new Set(
    queries.match(/swefarm_\w+/g)?.map((name) => name.replace(/_(bucket|sum|count)$/, '')),
  );
  expect(METRICS.map(({ name }) => name).filter((name) => !named.has(name))).toEqual([]);
  expect([...named].filter((name) => !METRICS.some((metric) => metric.name === name))).toEqual([]);
});

test('every link and every alert leads to a panel that is there, and alerts to one that says what to do', () => {
  for (const panel of panels) for (const next of panel.next ?? []) panelPath(next, DASHBOARDS);
  for (const { name, panel, todo } of ALERTS) {
    panelPath(panel, DASHBOARDS);
    const [dashboard, key] = panel.split('/');
    const shown = DASHBOARDS.find((one) => one.key === dashboard)?.rows.flatMap((row) => row.panels);
    expect(shown?.find((one) => one.key === key)?.todo, `${name}: what to do on its panel`).toBeTruthy();
    expect(todo).not.toBe('');
  }
  expect(new Set(ALERTS.map(({ name }) => name)).size).toBe(ALERTS.length);
  expect(RULES.every(({ record }) => /^swefarm:\w+:\w+$/.test(record))).toBe(true);
});

describe.each(DASHBOARDS.map((spec) => [spec.key, spec] as const))('dashboard %s', (key, spec) => {
  const dashboard = grafanaDashboard(spec, DASHBOARDS);
  test('panels have the numbers that links use, and do not overlap', () => {
    const ids = dashboard.panels?.map(({ id }) => id) ?? [];
    expect(new Set(ids).size).toBe(ids.length);
    const byTitle = new Map(dashboard.panels?.map(({ id, title }) => [title, id]));
    for (const panel of spec.rows.flatMap((row) => row.panels)) {
      expect(panelPath(`${key}/${panel.key}`, DASHBOARDS)).toBe(
        `/d/${dashboard.uid}?viewPanel=${byTitle.get(panel.title)}`,
      );
    }
    const taken = new Set<string>();
    for (const { gridPos } of dashboard.panels ?? []) {
      if (!gridPos) throw new Error('a panel without a place');
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.has(`${x} ${y}`)).toBe(false);
          taken.add(`${x} ${y}`);
        }
      }
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
    }
  });
});

test('the files written by hand are well-formed and name what there is', () => {
  const read = (path: string) => parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'));
  expect(read('prometheus/prometheus.yml').rule_files).toEqual(['rules.yml', 'alerts.yml']);
  expect(read('grafana/provisioning/dashboards.yml').providers).toHaveLength(1);
  expect(read('grafana/provisioning/datasources.yml').datasources[0].type).toBe('prometheus');
});
