import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readShippedCard } from '@swefarm/agents';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { describe, expect, test } from 'vitest';
import { agentSettings } from './agentsettings.ts';
import { RUN_FLAGS } from './flags.ts';
import { newRunRecord } from './record.ts';

const codex = readShippedCard('codex');
const OWN = {
  ...{ card: 1, name: 'own', version: '1', description: 'a toy', bundle: { name: 'own' } },
  ...{ needs: { libc: 'none' }, api: { dialects: ['chat'] }, command: ['{bundle}/x', '{level}'] },
  options: { level: { default: 1, help: 'a number' } },
  ends: [{ exit: 'any', status: 'submitted' }],
};

describe('agentSettings', () => {
  test('the name of a shipped card selects the card, with typed options', () => {
    expect(agentSettings({ type: 'codex', options: { subagents: 'true' }, step_limit: 5 })).toEqual({
      ...{ type: 'installed', card: codex, step_limit: 5 },
      options: { subagents: true },
    });
  });

  test('a file is accepted only for an option that takes a file', () => {
    const given = { type: 'mini-swe-agent', option_files: { config: 'agent: {}\n' } };
    expect(agentSettings(given)).toMatchObject({ type: 'installed', option_files: given.option_files });
    expect(() => agentSettings({ ...given, option_files: { confg: '' } })).toThrow(/did you mean config\?/);
    expect(() => agentSettings({ type: 'mini', option_files: { config: '' } })).toThrow(/no option config/);
  });

  test('other agents are not changed', () => {
    expect(agentSettings({})).toEqual({});
    expect(agentSettings({ type: 'golden', options: {} })).toEqual({ type: 'golden', options: {} });
  });

  test('a card is a mapping or the path of a file, and needs no type', () => {
    const file = join(temporaryFolder(), 'own.yaml');
    writeFileSync(file, JSON.stringify(OWN));
    for (const card of [OWN, file])
      expect(agentSettings({ card, options: { level: '2' } })).toMatchObject({
        ...{ type: 'installed', options: { level: 2 } },
        card: { name: 'own' },
      });
  });

  test('a named agent overrides the card of an operator', () => {
    expect(agentSettings({ type: 'mini', card: OWN })).toEqual({ type: 'mini' });
    expect(agentSettings({ type: 'codex', card: OWN })).toMatchObject({ card: { name: 'codex' } });
  });

  test.each([
    [{ type: 'codx' }, /there is no agent "codx"; did you mean codex\?/],
    [{ type: 'zzzzzzz' }, /there is no agent "zzzzzzz"; agents: mini, golden, .*claude-code/],
    [{ type: 'installed' }, /agent installed needs a card: name one of claude-code, /],
    [
      { type: 'codex', options: { subagent: true } },
      /agent codex has no option subagent; did you mean subagents\?/,
    ],
    [{ options: { a: 1 } }, /agent mini has no option a; agents with options: claude-code/],
    [{ card: { ...OWN, comand: [] } }, /agent\.card: comand: unknown key; did you mean command\?/],
  ])('refuses %j', (given, message) => {
    expect(() => agentSettings(given)).toThrow(message);
  });
});

const make = (flags: object, configFile?: string) =>
  newRunRecord(
    {
      dataset: { path: '/d.jsonl', sha256: 'aa', instances: [] },
      flags: { policyUrl: ['http://h:1/v1'], model: 'm', ...flags },
      configFile,
    },
    false,
  ).agent;

test('flags name a shipped card, or the file of another', () => {
  const file = join(temporaryFolder(), 'own.yaml');
  writeFileSync(file, JSON.stringify(OWN));
  expect(make({ agent: 'codex', agentOption: ['compact=true'] })).toMatchObject({
    ...{ type: 'installed', card: codex },
    options: { compact: true },
  });
  expect(make({ agentCard: file })).toMatchObject({ type: 'installed', card: { name: 'own' } });
  expect(() => make({ agentCard: file, agent: 'codex' })).toThrow(
    /--agent codex and --agent-card both name the agent/,
  );
  expect(() => make({ agentCard: `${file}x` })).toThrow(/--agent-card: .*no such file/);
  const config = join(temporaryFolder(), 'run.yaml');
  writeFileSync(config, 'agent: {type: mini}');
  expect(make({ agentCard: file }, config).card?.name).toBe('own');
});

test.each([
  ['oracle', 'golden'],
  ['nop', 'noop'],
])('the agent %s of Harbor is the agent %s', (theirs, ours) => {
  expect(agentSettings({ type: theirs })).toEqual({ type: ours });
});

test('the help of --agent names the shipped cards', () => {
  const flag = RUN_FLAGS.find((one) => one.flag.startsWith('--agent <'));
  expect(flag?.choices).toEqual(expect.arrayContaining(['mini', 'golden', 'codex', 'claude-code']));
});
