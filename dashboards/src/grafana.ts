/** Renders the dashboards as Grafana's JSON. Grafana's own builders guarantee its form, because no Grafana can be asked here. */
import { StackingConfigBuilder, StackingMode } from '@grafana/grafana-foundation-sdk/common';
import {
  type Dashboard,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  IntervalVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TimeseriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import { OUTCOME_METRICS, WORKER_METRICS } from '@swefarm/shared';
import { panelPath } from './prometheus.ts';
import { type DashboardSpec, type PanelSpec, panelIds, uidOf } from './spec.ts';

/** The metric that provides the values of each variable. */
const VARIABLES = { kind: OUTCOME_METRICS.rollouts.name, node: WORKER_METRICS.slots.name } as const;
/** The datasource that the viewer chooses. */
const DATASOURCE = { type: 'prometheus', uid: `\${datasource}` };
const TAG = 'swefarm';
/** Grafana's grid is 24 wide: three panels side by side. */
const WIDTH = 8;
const HEIGHT = 9;

/** Renders one dashboard; `all`: the dashboards that its panels may link to. */
export function grafanaDashboard(spec: DashboardSpec, all: readonly DashboardSpec[]): Dashboard {
  const ids = panelIds(spec);
  const builder = new DashboardBuilder(spec.title)
    .uid(uidOf(spec.key))
    .description(spec.about)
    .tags([TAG])
    .tooltip(DashboardCursorSync.Crosshair)
    .refresh('30s')
    .time({ from: 'now-3h', to: 'now' })
    .link(new DashboardLinkBuilder('Swefarm').type(DashboardLinkType.Dashboards).tags([TAG]).keepTime(true))
    .withVariable(new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'))
    .withVariable(
      new IntervalVariableBuilder('window')
        .label('Window')
        .values('5m,15m,1h,6h,1d')
        .current({ selected: true, text: '15m', value: '15m' }),
    );
  for (const name of spec.variables) {
    builder.withVariable(
      new QueryVariableBuilder(name)
        .datasource(DATASOURCE)
        .query(`label_values(${VARIABLES[name]}, ${name})`)
        .refresh(VariableRefresh.OnTimeRangeChanged)
        .multi(true)
        .includeAll(true)
        .allValue('.*')
        .current({ selected: true, text: ['All'], value: ['$__all'] }),
    );
  }
  for (const row of spec.rows) {
    builder.withRow(new RowBuilder(row.title));
    for (const panel of row.panels) builder.withPanel(panelBuilder(panel, all));
  }
  const dashboard = builder.build();
  const numbers = [...ids.values()];
  // Alerts link to panels by the numbers of spec.ts, so these replace the builder's.
  let next = 0;
  for (const panel of dashboard.panels ?? []) {
    panel.id = panel.type === 'row' ? (numbers[next] ?? 0) - 1 : (numbers[next++] ?? 0);
  }
  return dashboard;
}

function panelBuilder(spec: PanelSpec, all: readonly DashboardSpec[]): TimeseriesBuilder | StatBuilder {
  const builder = spec.kind === 'stat' ? new StatBuilder() : new TimeseriesBuilder();
  const text = spec.todo ? `${spec.about}\n\n**What to do.** ${spec.todo}` : spec.about;
  builder
    .title(spec.title)
    .description(text)
    .datasource(DATASOURCE)
    .unit(spec.unit)
    .min(0)
    .height(HEIGHT)
    .span(WIDTH)
    .links((spec.next ?? []).map((reference) => linkTo(reference, all)));
  if (spec.max !== undefined) builder.max(spec.max);
  if (spec.stacked && builder instanceof TimeseriesBuilder) {
    builder.stacking(new StackingConfigBuilder().mode(StackingMode.Normal)).fillOpacity(30);
  }
  for (const [index, { expr, legend }] of spec.queries.entries()) {
    const query = new DataqueryBuilder()
      .expr(expr)
      .legendFormat(legend)
      .refId(String.fromCharCode(65 + index));
    builder.withTarget(query);
  }
  return builder;
}

function linkTo(reference: string, all: readonly DashboardSpec[]): DashboardLinkBuilder {
  const [key, panel] = reference.split('/');
  const panels = all.find((one) => one.key === key)?.rows.flatMap((row) => row.panels) ?? [];
  const title = panels.find((one) => one.key === panel)?.title ?? reference;
  // A panel's own link passes the variables on only when its address names them.
  return new DashboardLinkBuilder(title)
    .type(DashboardLinkType.Link)
    .url(`${panelPath(reference, all)}&\${__url_time_range}&\${__all_variables}`);
}
