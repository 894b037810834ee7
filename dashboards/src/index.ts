export { ALERTS } from './alerts.ts';
export { DASHBOARDS } from './files.ts';
export type { DashboardSpec, PanelSpec } from './spec.ts';
