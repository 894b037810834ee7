import { expect, test } from 'vitest';
import { AGENT_NAMES, agentsWith, asksPolicy, DEFAULT_AGENT } from './agents.ts';

test('the default agent uses a policy, an unknown agent does not', () => {
  expect([undefined, DEFAULT_AGENT, 'golden', 'nobody', null].map((name) => asksPolicy(name))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});

test('agents are found by their properties', () => {
  expect(agentsWith({})).toEqual(AGENT_NAMES);
  expect(agentsWith({ byName: true, needsPatches: true })).toEqual(['patch']);
  expect(agentsWith({ worksInSandbox: true, byName: false })).toEqual(['installed', 'external']);
});
