export { ALERTS, type AlertSpec } from './alerts.ts';
export { DASHBOARDS } from './files.ts';
export type { DashboardSpec, PanelSpec } from './spec.ts';
