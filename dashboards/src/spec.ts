/** What a dashboard of ours is, before Grafana's own form: data that alerts can point at. */

export type Unit = 'short' | 'percentunit' | 's' | 'bytes' | 'ops' | 'bool';

export type PanelSpec = {
  /** Stable: alerts and links name it. */
  key: string;
  title: string;
  kind: 'timeseries' | 'stat';
  unit: Unit;
  queries: readonly { expr: string; legend: string }[];
  /** What it says. */
  about: string;
  /** What to do when it looks wrong. */
  todo?: string;
  /** Where to look next, as `dashboard/panel`. */
  next?: readonly string[];
  stacked?: boolean;
  max?: number;
};

export type DashboardSpec = {
  /** Part of its address, and the name of its file. */
  key: string;
  title: string;
  about: string;
  /** Variables it has, by label. */
  variables: readonly ('kind' | 'node')[];
  rows: readonly { title: string; panels: readonly PanelSpec[] }[];
};

export const uidOf = (dashboard: string): string => `swefarm-${dashboard}`;

/** Numbers of panels within their dashboard, from 1 (rows are counted too). */
export function panelIds(dashboard: DashboardSpec): Map<string, number> {
  const ids = new Map<string, number>();
  let id = 0;
  for (const row of dashboard.rows) {
    id++;
    for (const panel of row.panels) ids.set(panel.key, ++id);
  }
  return ids;
}
