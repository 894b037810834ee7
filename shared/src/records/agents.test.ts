import { expect, test } from 'vitest';
import { AGENT_NAMES, agentsWith, asksPolicy, DEFAULT_AGENT } from './agents.ts';

test('a setting that names no agent asks a policy, one that names an unknown agent does not', () => {
  expect([undefined, DEFAULT_AGENT, 'golden', 'nobody', null].map((name) => asksPolicy(name))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});

test('agents are found by their facts', () => {
  expect(agentsWith({})).toEqual(AGENT_NAMES);
  expect(agentsWith({ byName: true, needsPatches: true })).toEqual(['patch']);
  expect(agentsWith({ worksInSandbox: true, byName: false })).toEqual(['external']);
});
