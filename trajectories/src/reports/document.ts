/** Renders a report as Markdown, and as one HTML page that needs no script, other files or network. */
import type { Analysis, Bin, Cut } from './analysis.ts';
import {
  costTable,
  cutTables,
  decimal,
  distributionTables,
  percent,
  scalingTable,
  type Table,
  withInterval,
} from './figures.ts';
import type { ProfileReport } from './render.ts';

export type FullReport = ProfileReport & { analysis: Analysis };

function tablesOf(report: FullReport): Table[] {
  const { analysis } = report;
  const causes = [...Object.entries(report.failures), ...Object.entries(report.cancelled)];
  const all: [name: string, cell: string][] = [
    ['rollouts', String(report.total)],
    ['judged', String(report.judged)],
    ['resolved', String(report.resolved)],
    ['resolved officially', String(report.resolved_officially)],
    ...(report.scored > 0 ? [['scored only', String(report.scored)] satisfies [string, string]] : []),
    ['accuracy', percent(report.accuracy)],
    ['accuracy over instances', withInterval(analysis.accuracy_interval)],
    ['mean reward', decimal(report.mean_reward, 3)],
    ['mean turns', decimal(report.mean_turns, 1)],
  ];
  const unjudged = {
    title: 'Not judged',
    columns: ['cause', 'times'],
    rows: causes.map(([cause, times]) => [cause, String(times)]),
  };
  return [
    { title: 'All', columns: all.map(([name]) => name), rows: [all.map(([, cell]) => cell)] },
    scalingTable(analysis.scaling),
    ...(analysis.costs ? [costTable(analysis.costs)] : []),
    ...cutTables(analysis),
    ...(causes.length === 0 ? [] : [unjudged]),
    ...distributionTables(analysis),
  ];
}

export const renderMarkdown = (report: FullReport, title: string): string =>
  markdownOf(title, tablesOf(report));

/** Returns tables as a Markdown document. */
export function markdownOf(title: string, all: readonly Table[]): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  const tables = all.map(({ title: name, columns, rows }) =>
    [`## ${name}`, '', line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n'),
  );
  return [`# ${cell(title)}`, ...tables].join('\n\n');
}

export function renderPage(report: FullReport, title: string): string {
  const { distributions, scaling, families, repositories } = report.analysis;
  const plots = [
    plot('pass@k and best@k', scaling.flatMap(scalingBars), 1),
    plot('Resolved, by family', shareBars(families), 1),
    plot('Resolved, by repository', shareBars(repositories), 1),
    plot('Rollouts, by repository', countBars(Object.entries(distributions.repositories))),
    plot('Gap to the oracle, by repository', gapBars(repositories), 1),
    plot('Why agents stopped', countBars(Object.entries(distributions.exit_statuses))),
    plot('Turns of judged rollouts', binBars(distributions.turns)),
    plot('Tokens of judged rollouts', binBars(distributions.tokens)),
    plot('Cost of rollouts in US dollars', binBars(distributions.cost)),
  ];
  const tables = tablesOf(report).map(
    ({ title: name, columns, rows }) =>
      `<section><h2>${escapeHtml(name)}</h2><div class="wide"><table><thead>${cells('th', columns)}</thead><tbody>${rows.map((row) => cells('td', row)).join('')}</tbody></table></div></section>`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body><h1>${escapeHtml(title)}</h1><div class="plots">${plots.join('')}</div>${tables.join('')}</body></html>
`;
}

const STYLE = `
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:1100px;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.05rem;margin:2rem 0 .5rem}
table{border-collapse:collapse}th,td{text-align:right;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #d8dee4;white-space:nowrap}
th:first-child,td:first-child{text-align:left}th{font-weight:600}.wide{overflow-x:auto}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(440px,1fr));gap:1.5rem}figure{margin:0}figcaption{font-weight:600;margin-bottom:.3rem}
svg{width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:currentColor}rect{fill:#2f6fb2}rect.best{fill:#c98a2b}path{stroke:currentColor}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}rect{fill:#58a6ff}}`;

type Bar = { label: string; value: number; shown: string; low?: number; high?: number; best?: boolean };

function scalingBars({ k, pass, best }: Analysis['scaling'][number]): Bar[] {
  const { value, low, high } = pass;
  const bars: Bar[] = [{ label: `pass@${k}`, value, low, high, shown: withInterval(pass) }];
  return best === null
    ? bars
    : [...bars, { label: `best@${k}`, ...best, shown: withInterval(best), best: true }];
}

const shareBars = (cuts: Readonly<Record<string, Cut>>): Bar[] =>
  Object.entries(cuts).flatMap(([label, { accuracy }]): Bar[] =>
    accuracy === null ? [] : [{ label, value: accuracy, shown: percent(accuracy) }],
  );
const gapBars = (cuts: Readonly<Record<string, Cut>>): Bar[] =>
  Object.entries(cuts).flatMap(([name, { largest }]): Bar[] =>
    largest?.gap ? [{ label: name, ...largest.gap, shown: withInterval(largest.gap) }] : [],
  );
const countBars = (counts: readonly [string, number][]): Bar[] =>
  counts.map(([label, value]) => ({ label, value, shown: String(value) }));
const binBars = (bins: readonly Bin[]): Bar[] =>
  bins.map(({ from, to, count }) => ({
    label: `${short(from)}–${short(to)}`,
    value: count,
    shown: String(count),
  }));
const short = (value: number): string =>
  new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 }).format(value);

const ROW = 20;
const LEFT = 150;
const WIDTH = 200;
const RIGHT = 130;
const MOST_BARS = 30;

/** Renders horizontal bars with names and values. `full` is the value that fills the width, by default the largest value. */
function plot(title: string, all: readonly Bar[], full?: number): string {
  const bars = all.slice(0, MOST_BARS);
  if (bars.length === 0) return '';
  const most = full ?? Math.max(1e-9, ...bars.map(({ value }) => value));
  const x = (value: number): string => (LEFT + (WIDTH * value) / most).toFixed(1);
  const rows = bars.map(({ label, value, shown, low, high, best }, at) => {
    const y = at * ROW;
    const middle = y + 10;
    const range =
      low === undefined || high === undefined
        ? ''
        : `<path d="M${x(low)} ${middle}H${x(high)}M${x(low)} ${middle - 3}v6M${x(high)} ${middle - 3}v6"/>`;
    const end = Math.max(value, high ?? 0);
    return `<text x="${LEFT - 6}" y="${y + 14}" text-anchor="end">${escapeHtml(cut(label))}</text><rect${best ? ' class="best"' : ''} x="${LEFT}" y="${y + 3}" width="${((WIDTH * value) / most).toFixed(1)}" height="14"/>${range}<text x="${(Number(x(end)) + 6).toFixed(1)}" y="${y + 14}">${escapeHtml(shown)}</text>`;
  });
  const more = all.length > bars.length ? ` (the first ${bars.length} of ${all.length})` : '';
  return `<figure><figcaption>${escapeHtml(title + more)}</figcaption><svg viewBox="0 0 ${LEFT + WIDTH + RIGHT} ${bars.length * ROW}" role="img" aria-label="${escapeHtml(title)}">${rows.join('')}</svg></figure>`;
}

const LONGEST_LABEL = 20;
const cut = (label: string): string =>
  label.length > LONGEST_LABEL ? `${label.slice(0, LONGEST_LABEL - 1)}…` : label;

const cells = (tag: 'td' | 'th', texts: readonly string[]): string =>
  `<tr>${texts.map((text) => `<${tag}>${escapeHtml(text)}</${tag}>`).join('')}</tr>`;

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
