/** Requests in the form of all dialects, for tests without HTTP. */
import type { Message } from '@swefarm/shared';
import type { AgentRequest } from '../src/dialects/dialect.ts';
import { tool } from './options.ts';

export const requestOf = (messages: readonly Message[], more: Partial<AgentRequest> = {}): AgentRequest => ({
  ...{
    dialect: 'chat',
    stream: false,
    model: 'toy',
    callsAllowed: true,
    maxTokens: null,
    streamUsage: false,
  },
  messages: structuredClone([...messages]),
  ...{ answers: new Map(), tools: [tool('bash')], shapes: new Map(), dropped: [] },
  ...more,
});

export const system = (content: string): Message => ({ role: 'system', content });
export const user = (content: string): Message => ({ role: 'user', content });
export const assistant = (content: string): Message => ({ role: 'assistant', content });
export const call = (id: string, name: string, args: string) => ({
  ...{ id, type: 'function' as const, function: { name, arguments: args } },
});
export const result = (id: string, content: string): Message => ({
  role: 'tool',
  tool_call_id: id,
  content,
});
