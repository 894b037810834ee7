/** Tests that the example jobs name the gateway and the token of the release `farm`, as chart.test.ts renders it with default values. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CHART, resourcesOf } from './render.ts';

const EXAMPLES = join(CHART, '../examples');
const farm = resourcesOf(readFileSync(join(import.meta.dirname, 'snapshots/default.yaml'), 'utf8'));
const gateway = (kind: string) =>
  farm.find((one) => one.kind === kind && one.metadata.name === 'farm-swefarm-gateway');

test.for(readdirSync(EXAMPLES))('the job of %s names the gateway and its token', (name) => {
  const job = readFileSync(join(EXAMPLES, name), 'utf8');
  const [{ port }] = gateway('Service')?.spec.ports ?? [];
  expect(job).toMatch(new RegExp(`farm-swefarm-gateway[^]*\\b${port}\\b`));
  expect(gateway('Secret')).toHaveProperty('data.token');
  expect(job).toContain('secretKeyRef: { name: farm-swefarm-gateway, key: token }');
});
