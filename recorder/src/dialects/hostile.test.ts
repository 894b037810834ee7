/** An agent is untrusted: any request is read, or refused with the path of its mistake. */
import type { Dialect } from '@swefarm/shared';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { call } from '../../test/agentrequest.ts';
import { readRecorded } from '../../test/requests/recorded.ts';
import { BadRequest } from './dialect.ts';
import { DIALECTS } from './registry.ts';

const read = (dialect: Dialect, body: unknown) => DIALECTS[dialect].read(body);

describe('hostile requests', () => {
  const nested = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
  const user = [{ role: 'user', content: 'Hello' }];

  test.each<[Dialect, unknown, string]>([
    ['chat', null, 'the request: expected an object'],
    ['chat', { model: 'm', messages: [] }, 'messages: expected at least one'],
    ['chat', { messages: user }, 'model: expected a text of 1 to 256 characters'],
    ['chat', { model: 'm', messages: user, x: nested(70) }, 'nested deeper than 64 levels'],
    ['chat', { model: 'm', messages: [{ role: 'function' }] }, 'messages[0].role: expected system'],
    [
      'chat',
      { model: 'm', messages: [{ role: 'user', content: 5 }] },
      'messages[0].content: expected a text',
    ],
    ['chat', { model: 'm', messages: [{ role: 'tool', content: '' }] }, 'messages[0].tool_call_id'],
    ['chat', { model: 'm', messages: user, max_tokens: 0 }, 'max_tokens: expected a whole number from 1'],
    ['chat', { model: 'm', messages: user, n: 2 }, 'n: expected 1'],
    ['chat', { model: 'm', messages: user, tools: {} }, 'tools: expected a list'],
    [
      'messages',
      { model: 'm', messages: [{ role: 'tool', content: '' }] },
      'messages[0].role: expected user',
    ],
    ['messages', { model: 'm', messages: [{ role: 'user', content: [{}] }] }, 'messages[0].content[0].type'],
    ['messages', { model: 'm', messages: user, tools: [{ input_schema: {} }] }, 'tools[0].name'],
    [
      'responses',
      { model: 'm', input: [{ type: 'item_reference', id: 'x' }] },
      'input[0]: items are not stored',
    ],
    ['responses', { model: 'm', input: 'x', previous_response_id: 'r' }, 'previous_response_id'],
    ['responses', { model: 'm', input: [{ type: 'function_call', name: 'x' }] }, 'input[0].call_id'],
  ])('%s refuses %j', (dialect, body, message) => {
    expect(() => read(dialect, body)).toThrow(BadRequest);
    expect(() => read(dialect, body)).toThrow(message);
  });

  test('a key __proto__ changes nothing', () => {
    const body = JSON.parse(
      '{"model":"m","__proto__":{"stream":true},"messages":[{"role":"user","content":"x","__proto__":{"polluted":1}},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"__proto__","arguments":"{\\"__proto__\\": {\\"polluted\\": 1}}"}}]}],"tools":[{"type":"function","function":{"name":"__proto__","parameters":{"__proto__":{"polluted":1}}}}]}',
    );
    const request = read('chat', body);
    expect(request.stream).toBe(false);
    expect(request.tools[0]?.function.name).toBe('__proto__');
    expect(request.messages[1]?.tool_calls).toEqual([call('c', '__proto__', '{"__proto__":{"polluted":1}}')]);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  test('arguments that are nested too deeply are not changed', () => {
    const args = `{"a": ${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    const { messages } = read('chat', {
      model: 'm',
      messages: [{ role: 'assistant', tool_calls: [call('c', 'bash', args)] }],
    });
    expect(messages[0]?.tool_calls?.[0]?.function.arguments).toBe(args);
  });

  test('a request of a megabyte is read in a fraction of a second', () => {
    const text = 'x-anthropic-billing-header '.repeat(40_000);
    const started = performance.now();
    read('messages', {
      model: 'm',
      system: [{ type: 'text', text }],
      messages: [{ role: 'user', content: text }],
    });
    expect(performance.now() - started).toBeLessThan(500);
  });

  test('names of dropped fields are bounded', () => {
    const tools = Array.from({ length: 1_000 }, (_none, at) => ({ type: `t${at}` }));
    expect(read('chat', { model: 'm', messages: user, tools }).dropped).toHaveLength(32);
  });

  const field = fc.constantFrom(
    ...[
      'type',
      'role',
      'content',
      'text',
      'messages',
      'input',
      'tools',
      'name',
      'function',
      'arguments',
      'id',
    ],
    ...[
      'call_id',
      'tool_calls',
      'system',
      'thinking',
      'summary',
      'output',
      'stream_options',
      'namespace',
      '__proto__',
    ],
  );
  const word = fc.constantFrom(
    'user',
    'assistant',
    'tool',
    'system',
    'message',
    'function_call',
    'tool_use',
    'text',
  );
  const { value: anyValue } = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 6 }, word, fc.jsonValue({ maxDepth: 1 }), tie('list'), tie('object')),
    list: fc.array(tie('value'), { maxLength: 4 }),
    object: fc.dictionary(field, tie('value'), { maxKeys: 6 }),
  }));
  test.each<[Dialect, string]>([
    ['chat', 'opencode-chat'],
    ['messages', 'claude-code-bare'],
    ['responses', 'codex-subagent'],
  ])('%s reads any JSON, or refuses it as a bad request', (dialect, run) => {
    const recorded = readRecorded(run).at(-1)?.body as object;
    const like = (key: string, value: unknown) => ({ ...recorded, [key]: value });
    fc.assert(
      fc.property(
        fc.oneof(
          anyValue,
          fc.tuple(field, anyValue).map(([key, value]) => like(key, value)),
        ),
        (body) => {
          try {
            const { messages, tools } = read(dialect, JSON.parse(JSON.stringify(body) ?? 'null'));
            expect(messages.length).toBeGreaterThan(0);
            for (const { role } of messages) expect(['system', 'user', 'assistant', 'tool']).toContain(role);
            for (const tool of tools) expect(tool.type).toBe('function');
          } catch (error) {
            expect(error).toBeInstanceOf(BadRequest);
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });
});
