/** Options of a recorder for tests. */
import { AgentCard, type ToolDefinition } from '@swefarm/shared';
import { bareTrajectory } from '@swefarm/testkit';
import type { RecorderOptions } from '../src/index.ts';
import type { ScriptedPolicy } from './scriptedpolicy.ts';

export const KEY = 'key-of-this-rollout';

export const tool = (name: string): ToolDefinition => ({
  type: 'function',
  function: { name, description: `Runs ${name}.`, parameters: { type: 'object', properties: {} } },
});

type Api = Partial<AgentCard['api']>;

/** Returns a card of an agent; `more` replaces fields. */
export const card = (api: Api = {}, more: Record<string, unknown> = {}): AgentCard =>
  AgentCard.parse({
    ...{ card: 1, name: 'toy', version: '1', description: 'An agent for tests.' },
    bundle: { name: 'toy' },
    needs: { libc: 'none' },
    api: { dialects: ['chat', 'responses', 'messages'], ...api },
    command: ['toy'],
    ends: [{ exit: 'any', status: 'submitted' }],
    ...more,
  });

export const BEFORE = bareTrajectory({
  ...{ token_mode: 'token-in', model: 'toy-model', endpoint: 'http://policy', exit_status: null },
});

/** Returns options without limits; `more` replaces fields. */
export function recorderOptions(
  { openLine }: Pick<ScriptedPolicy, 'openLine'>,
  {
    limits,
    ...more
  }: Partial<Omit<RecorderOptions, 'limits'>> & { limits?: Partial<RecorderOptions['limits']> } = {},
): RecorderOptions {
  return {
    openLine,
    policy: { requireTokens: true, experts: 'drop', tokenMode: 'token-in' },
    card: card(),
    limits: {
      turns: 1000,
      answerTokens: null,
      cost: null,
      malformedInARow: 1000,
      wholePrompts: 1000,
      ...limits,
    },
    trainLines: 'all',
    key: KEY,
    trajectory: BEFORE,
    signal: new AbortController().signal,
    ...more,
  };
}
