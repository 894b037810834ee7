/** Tests that dashboards and alerts query existing metrics, and that their links lead to existing panels. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIVE_METRICS, type MetricDefinition, OUTCOME_METRICS, WORKER_METRICS } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from './tree.ts';

type Panel = {
  id: number;
  type: string;
  title: string;
  description?: string;
  links?: { title: string; url: string }[];
  targets?: { expr: string }[];
  gridPos: { x: number; y: number; w: number; h: number };
};
type Dashboard = { uid: string; panels: Panel[] };
type Alert = { alert: string; expr: string; annotations: { summary: string; todo: string; panel: string } };

const METRICS = new Map(
  [OUTCOME_METRICS, LIVE_METRICS, WORKER_METRICS]
    .flatMap((metrics) => Object.values<MetricDefinition>(metrics))
    .map((metric) => [metric.name as string, metric]),
);
/** Labels of service discovery, and of the buckets of a histogram. */
const SCRAPED = ['node', 'role', 'runtime', 'instance', 'le'];

const read = (path: string): string => readFileSync(join(ROOT, 'dashboards', path), 'utf8');
const readYaml = (path: string) => parse(read(path));
const DASHBOARDS = ['training', 'nodes', 'queue'].map(
  (name) => JSON.parse(read(`grafana/${name}.json`)) as Dashboard,
);
const ALERTS: Alert[] = readYaml('prometheus/alerts.yml').groups[0].rules;
const RULES: { record: string; expr: string }[] = readYaml('prometheus/rules.yml').groups[0].rules;

const panels = DASHBOARDS.flatMap(({ panels }) => panels);
const panelQueries = panels.flatMap(({ targets }) => targets ?? []).map(({ expr }) => expr);
const namesIn = (expr: string): string[] =>
  (expr.match(/swefarm_\w+/g) ?? []).map((name) => name.replace(/_(bucket|sum|count)$/, ''));
const linked = (url: string): Panel | undefined => {
  const [, uid, id] = /^\/d\/([\w-]+)\?viewPanel=(\d+)/.exec(url) ?? [];
  return DASHBOARDS.find((one) => one.uid === uid)?.panels.find((panel) => panel.id === Number(id));
};

test('every metric is on a panel', () => {
  const shown = new Set(panelQueries.flatMap(namesIn));
  expect([...METRICS.keys()].filter((name) => !shown.has(name))).toEqual([]);
});

test('queries of panels, alerts and rules use defined metrics with their labels', () => {
  const queries = [...panelQueries, ...[...ALERTS, ...RULES].map(({ expr }) => expr)];
  const wrong = queries.flatMap((expr) => {
    const unknown = namesIn(expr).filter((name) => !METRICS.has(name));
    const labelsOf = (names: string[]) => [
      ...SCRAPED,
      ...names.flatMap((name) => METRICS.get(name)?.labels ?? []),
    ];
    const matched = [...expr.matchAll(/(swefarm_\w+)\{([^}]*)\}/g)].flatMap(([, name = '', text = '']) =>
      [...text.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)]
        .map(([, label = '']) => label)
        .filter((label) => !labelsOf(namesIn(name)).includes(label)),
    );
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)]
      .flatMap(([, labels = '']) => labels.split(', '))
      .filter((label) => !labelsOf(namesIn(expr)).includes(label));
    return [...unknown, ...matched, ...grouped].map((name) => `${name} in ${expr}`);
  });
  expect(wrong).toEqual([]);
});

test('every link of a panel leads to the panel that its title names', () => {
  const links = panels.flatMap((panel) => panel.links ?? []);
  expect(links.filter(({ title, url }) => linked(url)?.title !== title)).toEqual([]);
});

test('every alert has a test, a remedy, and a panel that describes what to do', () => {
  const tested: { name: string }[] = readYaml('prometheus/alerts.test.yml').tests;
  expect(ALERTS.map(({ alert }) => alert)).toEqual(tested.map(({ name }) => name));
  const bare = ALERTS.filter(
    ({ annotations: { summary, todo, panel } }) =>
      !summary || !todo || !linked(panel)?.description?.includes('**What to do.**'),
  );
  expect(bare).toEqual([]);
});

describe.each(DASHBOARDS.map((dashboard) => [dashboard.uid, dashboard] as const))(
  'dashboard %s',
  (_, own) => {
    test('panels have ids of their own and do not overlap', () => {
      const ids = own.panels.map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      const cells = own.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
      );
      expect(new Set(cells).size).toBe(cells.length);
      expect(Math.max(...own.panels.map(({ gridPos: { x, w } }) => x + w))).toBeLessThanOrEqual(24);
    });
  },
);

test('Prometheus loads the rules, and Grafana the dashboards', () => {
  expect(readYaml('prometheus/prometheus.yml').rule_files).toEqual(['rules.yml', 'alerts.yml']);
  expect(readYaml('grafana/provisioning/dashboards.yml').providers).toHaveLength(1);
  expect(readYaml('grafana/provisioning/datasources.yml').datasources[0].type).toBe('prometheus');
});
