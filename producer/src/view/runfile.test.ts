import { RUN_FLAGS, recordFromSettings, requireKnownKeys, type SettingsTree } from '@swefarm/runs';
import { parseYaml } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { renderRunFile } from './runfile.ts';

const RUN = {
  group_size: 2,
  agent: { type: 'mini' },
  policy: { urls: ['http://localhost:8000/v1'], model: 'm' },
  until: { groups: 1, curriculum: { band: [0.2, 0.8] } },
};
const dataset = { path: 'd', sha256: '', instances: [{ instance_id: 'i' }] as never };

/** Checks a file as `rollout` does. */
function read(text: string): void {
  const settings = parseYaml(text) as SettingsTree;
  requireKnownKeys('run.yaml', settings);
  recordFromSettings(settings, 'r', dataset, null);
}

/** Removes the comment marks of a line and of the sections around it. */
function uncommented(lines: readonly string[], at: number): string {
  const own = [...lines];
  let depth = Number.POSITIVE_INFINITY;
  for (let above = at; above >= 0 && depth > 0; above--) {
    const [, mark, indent = '', key] = /^(#?)((?: {2})*)(\w+):/.exec(own[above] ?? '') ?? [];
    if (key === undefined || indent.length >= depth) continue;
    depth = indent.length;
    if (mark === '#') own[above] = (own[above] ?? '').slice(1);
  }
  return own.join('\n');
}

test('a line with a default is a valid setting without its mark', () => {
  const lines = renderRunFile(RUN, RUN_FLAGS, 'usage').split('\n');
  const settings = lines.flatMap((line, at) => (/^# *\w+: (?!.*\(not set\)$)/.test(line) ? [at] : []));
  expect(settings.length).toBeGreaterThan(60);
  for (const at of settings) expect(() => read(uncommented(lines, at)), lines[at]).not.toThrow();
});

test('no default is shown for a setting without one', () => {
  const text = renderRunFile({}, RUN_FLAGS, 'usage');
  for (const key of ['groups', 'temperature', 'seed', 'model'])
    expect(text).toMatch(new RegExp(`^#(?: {2})*${key}: # \\(not set\\)$`, 'm'));
  expect(text).toContain('band: [0.2, 0.8] # (not set)');
});
