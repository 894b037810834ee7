/** Generated files of the chart, by path below `helm/`. `npm run helm` writes them; a test fails where a file differs. */
import { readFileSync, writeFileSync } from 'node:fs';
import { readValues, type Value } from './values.ts';

const HELM = new URL('../../helm/', import.meta.url);
const DASHBOARDS = new URL('../../dashboards/', import.meta.url);
const read = (folder: URL, path: string): string => readFileSync(new URL(path, folder), 'utf8');

/** Copies of files of `dashboards/`, because a chart cannot read outside its folder. */
const COPIES = {
  'swefarm/files/rules.yml': 'prometheus/rules.yml',
  'swefarm/files/alerts.yml': 'prometheus/alerts.yml',
  'swefarm/files/training.json': 'grafana/training.json',
  'swefarm/files/nodes.json': 'grafana/nodes.json',
  'swefarm/files/queue.json': 'grafana/queue.json',
};

export function generatedFiles(): Map<string, string> {
  const values = readValues(read(HELM, 'swefarm/values.yaml'));
  const files = new Map([['swefarm/values.schema.json', `${JSON.stringify(schemaFile(values), null, 2)}\n`]]);
  for (const [to, from] of Object.entries(COPIES)) files.set(to, read(DASHBOARDS, from));
  return files;
}

function schemaFile(values: readonly Value[]): object {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the chart swefarm',
    ...group(values),
  };
}

const group = (values: readonly Value[]): Record<string, unknown> => ({
  type: 'object',
  properties: {
    ...Object.fromEntries(values.map((value) => [value.path.split('.').at(-1), schemaOf(value)])),
    // Helm adds `global` when another chart depends on this chart.
    ...(values.some(({ path }) => path.includes('.')) ? {} : { global: { type: 'object' } }),
  },
  additionalProperties: false,
});

function schemaOf({ description, schema, default: given, values }: Value): Record<string, unknown> {
  const form = values === null ? { type: typeOf(given) } : group(values);
  return { description, ...form, ...schema };
}

function typeOf(given: unknown): string {
  if (Array.isArray(given)) return 'array';
  if (typeof given === 'number') return Number.isInteger(given) ? 'integer' : 'number';
  return typeof given;
}

if (import.meta.main) {
  for (const [path, text] of generatedFiles()) writeFileSync(new URL(path, HELM), text);
}
