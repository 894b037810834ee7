/** The page of every metric, as Markdown: `node shared/src/metrics/table.ts > docs/metrics.md`. */
import type { Definitions } from './definition.ts';
import { LIVE_METRICS } from './live.ts';
import { OUTCOME_METRICS } from './outcomes.ts';
import { WORKER_METRICS } from './worker.ts';

const INTRODUCTION = `# Metrics

The commit in Redis counts each rollout once, and the gateway exposes these counters (\`swefarm serve\`, \`GET /metrics\`). A worker exposes what only its
node knows (\`--metrics-port\`, \`GET /metrics\`). No label contains an instance, rollout or run. The gateway's \`GET /sd\` adds the label \`node\`. \`kind\` is
the kind of run: validation, training or collection.

- resolve rate: \`sum(rate(swefarm_rollouts_resolved_total[15m])) / (sum(rate(swefarm_rollouts_total{outcome="judged"}[15m])) - sum(rate(swefarm_rollouts_scored_total[15m])))\`
- average turns: \`sum(rate(swefarm_rollout_turns_sum[15m])) / sum(rate(swefarm_rollout_turns_count[15m]))\`
- share of infrastructure failures: \`sum(rate(swefarm_rollouts_total{outcome="failed"}[5m])) / sum(rate(swefarm_rollouts_total[5m]))\`

Several gateways of one farm expose the same sums: use \`max without (instance)\` before a sum, as the rules in
[dashboards](../dashboards/README.md) do. A histogram \`x\` has the series \`x_bucket\`, \`x_sum\` and \`x_count\`.

This page is generated from the definitions in \`shared/src/metrics/\`: \`npm run docs:metrics\`.
`;

export function metricsPage(): string {
  const sections: [string, Definitions][] = [
    ['Gateway: outcomes, counted by the commit', OUTCOME_METRICS],
    ['Gateway: read at each scrape', LIVE_METRICS],
    ['Worker', WORKER_METRICS],
  ];
  const known =
    'Gateway and worker also expose the metrics of prom-client for a Node process (`process_…`, `nodejs_…`).\n';
  return [INTRODUCTION, ...sections.map(([title, of]) => `## ${title}\n\n${table(of)}\n`), known].join('\n');
}

function table(definitions: Definitions): string {
  const rows = Object.values(definitions).map(({ name, type, labels, unit, help }) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(' ') || '–',
    unit,
    help.replaceAll('|', '\\|'),
  ]);
  const head = ['name', 'type', 'labels', 'unit', 'meaning'];
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((text, column) => (column === row.length - 1 ? text : text.padEnd(widths[column] ?? 0))).join(' | ')} |`;
  return [
    line(head),
    line(head.map((_, column) => '-'.repeat(column === 4 ? 3 : (widths[column] ?? 3)))),
    ...rows.map(line),
  ].join('\n');
}

if (import.meta.main) process.stdout.write(metricsPage());
