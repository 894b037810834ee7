/** Renders Prometheus text from definitions and values; prom-client cannot expose sums that are in Redis. */
import type { LabelOf, MetricDefinition, Point } from './definition.ts';

export type Family = { readonly definition: MetricDefinition; readonly points: readonly Point[] };

/** Combines a definition with points; wrong labels do not compile. */
export const family = <const D extends MetricDefinition>(
  definition: D,
  points: readonly Point<LabelOf<D>>[],
): Family => ({ definition, points });

/** Renders the exposition format 0.0.4 of Prometheus (prometheus.io/docs/instrumenting/exposition_formats). */
export function renderFamilies(families: Iterable<Family>): string {
  const lines: string[] = [];
  for (const { definition, points } of families) {
    if (points.length === 0) continue;
    lines.push(
      `# HELP ${definition.name} ${definition.help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`,
    );
    lines.push(`# TYPE ${definition.name} ${definition.type}`);
    for (const point of points) lines.push(...linesOf(definition, point));
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

function linesOf(definition: MetricDefinition, { labels, value }: Point): string[] {
  const { name } = definition;
  if (typeof value === 'number') return [`${name}${braces(labels)} ${value}`];
  let running = 0;
  const bounds = [...(definition.buckets ?? []).map(String), '+Inf'];
  const buckets = bounds.map((le, index) => {
    running += value.buckets[index] ?? 0;
    return `${name}_bucket${braces({ ...labels, le })} ${running}`;
  });
  return [
    ...buckets,
    `${name}_sum${braces(labels)} ${value.sum}`,
    `${name}_count${braces(labels)} ${running}`,
  ];
}

function braces(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

const escaped = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
