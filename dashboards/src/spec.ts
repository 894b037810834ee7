/** The farm's own form of a dashboard, before it becomes Grafana's: data that alerts can refer to. */

export type Unit = 'short' | 'percentunit' | 's' | 'bytes' | 'ops' | 'bool' | 'currencyUSD';

export type PanelSpec = {
  /** Stable, because alerts and links refer to it. */
  key: string;
  title: string;
  kind: 'timeseries' | 'stat';
  unit: Unit;
  queries: readonly { expr: string; legend: string }[];
  /** What the panel shows. */
  about: string;
  /** What to do when it looks wrong. */
  todo?: string;
  /** Panels to look at next, as `dashboard/panel`. */
  next?: readonly string[];
  stacked?: boolean;
  max?: number;
};

export type DashboardSpec = {
  /** Part of the dashboard's address, and the name of its file. */
  key: string;
  title: string;
  about: string;
  /** The dashboard's variables, by label. */
  variables: readonly ('kind' | 'node')[];
  rows: readonly { title: string; panels: readonly PanelSpec[] }[];
};

export const uidOf = (dashboard: string): string => `swefarm-${dashboard}`;

/** Numbers of the panels within their dashboard, from 1 (rows are counted too). */
export function panelIds(dashboard: DashboardSpec): Map<string, number> {
  const ids = new Map<string, number>();
  let id = 0;
  for (const row of dashboard.rows) {
    id++;
    for (const panel of row.panels) ids.set(panel.key, ++id);
  }
  return ids;
}

/** An alert, with what to do about it and a test that it fires and clears. */
export type AlertSpec = {
  name: string;
  expr: string;
  for: string;
  severity: 'page' | 'ticket';
  /** One line; may contain {{ $labels.x }}. */
  summary: string;
  todo: string;
  /** The panel that shows it, as `dashboard/panel`. */
  panel: string;
  /** For promtool: series (one value a minute), when it fires with which labels, and when it is clear again. */
  test: {
    series: Readonly<Record<string, string>>;
    fires: { at: string; labels?: Readonly<Record<string, string>> };
    clears: string;
  };
};
