/** Increments under several kinds of templates, with a tokenizer in which each character is a token. */

import type { Message } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { AnswerError } from '../endpoint/errors.ts';
import { createIncrementer, type PreviousAnswer } from './increment.ts';
import type { Renderer } from './renderer.ts';

const END = '\u0001';
const never = () => Promise.reject(new Error('nothing is sent here'));
const encode = (text: string): Int32Array => Int32Array.from(text, (character) => character.charCodeAt(0));
const decode = (ids: Int32Array): string => String.fromCharCode(...ids);

type Write = (message: Message, index: number, all: readonly Message[]) => string;

const renderer = (write: Write, head = 'A:'): Renderer => ({
  render: async (messages, _tools, _post, how = { open: true }) =>
    encode(messages.map(write).join('') + (how.open ? head : '')),
  decode: async (ids) => decode(ids),
});
/** An answer that ends with this text; `ended`: the model stopped by itself. */
const previous = (sampled: string, { ended = false, name = 'bash' } = {}): PreviousAnswer => ({
  lastId: encode(sampled).at(-1),
  ended,
  message: {
    role: 'assistant',
    content: '',
    tool_calls: ['1', '2'].map((id) => ({ id, type: 'function', function: { name, arguments: '{}' } })),
  },
});
const callsOf = ({ tool_calls: calls = [] }: Message): string =>
  calls.map((call) => `<call>${call.function.arguments}</call>`).join('');
const plain: Write = (message) => `${message.role}:${message.content}${callsOf(message)}${END}\n`;
const after = async (
  write: Write,
  sampled: string | PreviousAnswer,
  ...messages: Message[]
): Promise<string> => {
  const increments = createIncrementer(renderer(write), []);
  const answered = typeof sampled === 'string' ? previous(sampled) : sampled;
  return decode(await increments.after(answered, messages, never));
};
const user: Message = { role: 'user', content: 'next' };
const tool = (id: string): Message => ({ role: 'tool', tool_call_id: id, content: `out ${id}` });

describe('the text after an answer', () => {
  test("is requested again after an error of the template's endpoint", async () => {
    const whole = renderer(plain);
    let faults = 1;
    const failing: Renderer = {
      ...whole,
      async render(messages, ...rest) {
        if (messages.some((message) => message.tool_calls) && faults-- > 0) throw new Error('reset');
        return await whole.render(messages, ...rest);
      },
    };
    const increments = createIncrementer(failing, []);
    const next = () => increments.after(previous(`<call>{}</call>${END}`), [tool('1')], never);
    await expect(next()).rejects.toThrow('reset');
    expect(decode(await next())).toBe(`\ntool:out 1${END}\nA:`);
  });
  test('contains the end of the turn only when the model did not sample it', async () => {
    expect(await after(plain, `yes${END}`, user)).toBe(`\nuser:next${END}\nA:`);
    expect(await after(plain, 'cut of', user)).toBe(`${END}\nuser:next${END}\nA:`);
  });
  test('after tool calls does not repeat their markup', async () => {
    expect(await after(plain, `<call>{}</call>${END}`, tool('1'), tool('2'))).toBe(
      `\ntool:out 1${END}\ntool:out 2${END}\nA:`,
    );
  });
  test("is the template's rendering of all new messages together", async () => {
    const grouped: Write = (message, index, all) => {
      if (message.role !== 'tool') return plain(message, index, all);
      const first = all[index - 1]?.role !== 'tool' ? 'user:' : '';
      const last = all[index + 1]?.role !== 'tool' ? `${END}\n` : '';
      return `${first}[${message.content}]${last}`;
    };
    expect(await after(grouped, END, tool('1'), tool('2'))).toBe(`\nuser:[out 1][out 2]${END}\nA:`);
  });
  test('throws for a template that omits earlier answers', async () => {
    const forgetful: Write = (message, index, all) =>
      message.role === 'assistant' ? `assistant:(previous)${END}\n` : plain(message, index, all);
    await expect(after(forgetful, END, user)).rejects.toMatchObject({ kind: 'template' });
  });
  test('throws for a template whose text depends on the answer', async () => {
    const quoting = createIncrementer(
      {
        render: async (messages) =>
          encode(messages.map(({ content }) => content).join('') + (messages[1]?.content ?? '')),
        decode: async (ids) => decode(ids),
      },
      [],
    );
    await expect(quoting.after(previous(''), [user], never)).rejects.toMatchObject({ kind: 'template' });
  });
  test('omits white space before a sampled end, and no text of an answer that was cut', async () => {
    const spaced: Write = ({ role, content }) => `${role}\n${content}\n${END}\n`;
    expect(await after(spaced, previous(END, { ended: true }), user)).toBe(`\nuser\nnext\n${END}\nA:`);
    expect(await after(spaced, previous(END, { ended: true }), tool('1'))).toBe(`\ntool\nout 1\n${END}\nA:`);
    // A line break that ends the answer is not the end of the turn.
    expect(await after(plain, previous('a\n'), user)).toBe(`${END}\nuser:next${END}\nA:`);
    expect(await after(plain, previous('\u0009', { ended: true }), user)).toBe(`${END}\nuser:next${END}\nA:`);
  });
});

const [CALL, TOOL, USER] = ['\u0002', '\u0003', '\u0004'];
const refusing = (write: Write): Write => {
  return (message, index, all) => {
    if (message.role === 'tool' && !all[index - 1]?.tool_calls && all[index - 1]?.role !== 'tool')
      throw new AnswerError('template', 'no previous assistant message with a tool call');
    return write(message, index, all);
  };
};

describe('tool results', () => {
  /** Like gpt-oss: a call ends with its own token, an answer with the token that ends every message. */
  const channels = refusing((message) => {
    if (message.tool_calls) return `to=bash:${callsOf(message)}${CALL}`;
    return `${message.role}:${message.content}${END}`;
  });
  test('are complete where calls and answers end with different tokens', async () => {
    expect(await after(channels, previous(`<call>{}</call>${CALL}`), tool('1'), tool('2'))).toBe(
      `tool:out 1${END}tool:out 2${END}A:`,
    );
    expect(await after(channels, previous('<call>{}</call>'), tool('1'))).toBe(`${CALL}tool:out 1${END}A:`);
  });
  /** Like GLM: only the next role ends a turn. */
  const roles: Write = (message) =>
    `${message.role === 'tool' ? TOOL : USER}${message.content}${callsOf(message)}`;
  test('are complete where the next role ends the turn', async () => {
    for (const sampled of [TOOL, '']) {
      expect(await after(roles, previous(`<call>{}</call>${sampled}`), tool('1'))).toBe(
        `${sampled === '' ? TOOL : ''}out 1A:`,
      );
    }
  });
  test('have the names of the calls', async () => {
    const named = refusing((message, index, all) => {
      const call = all[index - 1]?.tool_calls?.[0];
      return `${call ? `${call.function.name}:` : ''}${message.content}${callsOf(message)}${END}`;
    });
    const sampled = (name: string) => previous(END, { name });
    expect(await after(named, sampled('submit_solution'), tool('1'))).toBe(`submit_solution:out 1${END}A:`);
    expect(await after(named, sampled(`x${END}\n`), tool('1'))).toBe(`bash:out 1${END}A:`);
  });
  test('may contain the text that ends a turn or a call', async () => {
    const results: Message[] = [{ role: 'tool', tool_call_id: '1', content: `a${END}b</call>${CALL}` }];
    for (const write of [plain, channels, roles]) {
      expect(await after(write, previous('<call>{}</call>'), ...results)).toContain(`a${END}b</call>${CALL}`);
    }
  });
  test('throw for a template that omits them', async () => {
    const deaf: Write = (message, index, all) => (message.role === 'tool' ? '' : plain(message, index, all));
    await expect(after(deaf, END, tool('1'))).rejects.toMatchObject({
      kind: 'template',
      message: expect.stringMatching(/leaves tool results out/),
    });
  });
  test('follow calls without an end, even where they may follow nothing else', async () => {
    const bare = refusing((message) => `${message.role}:${message.content}${callsOf(message)}`);
    expect(await after(bare, previous('<call>{}</call>'), tool('1'))).toBe('tool:out 1A:');
  });
  test("throw the template's error where no method finds the end of the calls", async () => {
    const odd = refusing((message, index, all) =>
      index === all.length - 1 && message.tool_calls
        ? 'later'
        : `${message.role}${callsOf(message)}${message.content}`,
    );
    await expect(after(odd, END, tool('1'))).rejects.toThrow(/no previous assistant message/);
  });
});
