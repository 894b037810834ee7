/** All files generated from the definitions, by path below `dashboards/`; `npm run dashboards` writes them. */
import { writeFileSync } from 'node:fs';
import { grafanaDashboard } from './grafana.ts';
import { NODES } from './nodes.ts';
import { alertsFile, alertTestsFile, rulesFile } from './prometheus.ts';
import { QUEUE } from './queue.ts';
import type { DashboardSpec } from './spec.ts';
import { TRAINING } from './training.ts';

export const DASHBOARDS: readonly DashboardSpec[] = [TRAINING, NODES, QUEUE];

export function generatedFiles(): Map<string, string> {
  const files = new Map([
    ['prometheus/rules.yml', rulesFile()],
    ['prometheus/alerts.yml', alertsFile(DASHBOARDS)],
    ['prometheus/alerts.test.yml', alertTestsFile(DASHBOARDS)],
  ]);
  for (const spec of DASHBOARDS) {
    const json = JSON.stringify(grafanaDashboard(spec, DASHBOARDS), null, 2);
    files.set(`grafana/${spec.key}.json`, `${json}\n`);
  }
  return files;
}

if (import.meta.main) {
  for (const [path, text] of generatedFiles()) writeFileSync(new URL(`../${path}`, import.meta.url), text);
}
