/** Increments under templates of several manners, with a tokenizer in which each character is a token. */
import { describe, expect, test } from 'vitest';
import type { Message } from '../trajectory.ts';
import { openIncrementer } from './increment.ts';
import type { Renderer } from './renderer.ts';

const END = '\u0001';
const never = () => Promise.reject(new Error('nothing is sent here'));
const encode = (text: string): Int32Array => Int32Array.from(text, (character) => character.charCodeAt(0));
const decode = (ids: Int32Array): string => String.fromCharCode(...ids);

type Write = (message: Message, place: number, all: readonly Message[]) => string;

const renderer = (write: Write, head = 'A:'): Renderer => ({
  render: async (messages) => encode(messages.map(write).join('') + head),
});
const callsOf = ({ tool_calls: calls = [] }: Message): string =>
  calls.map((call) => `<call>${call.function.arguments}</call>`).join('');
const plain: Write = (message) => `${message.role}:${message.content}${callsOf(message)}${END}\n`;
const after = async (write: Write, sampled: string, ...messages: Message[]): Promise<string> => {
  const increments = openIncrementer(renderer(write), []);
  return decode(await increments.after(encode(sampled).at(-1), messages, never));
};
const user: Message = { role: 'user', content: 'next' };
const tool = (id: string): Message => ({ role: 'tool', tool_call_id: id, content: `out ${id}` });

describe('what follows an answer', () => {
  test('begins behind the end of the turn when that was sampled, and with it when it was not', async () => {
    expect(await after(plain, `yes${END}`, user)).toBe(`\nuser:next${END}\nA:`);
    expect(await after(plain, 'cut of', user)).toBe(`${END}\nuser:next${END}\nA:`);
  });
  test('after tool calls leaves their markup to the model', async () => {
    expect(await after(plain, `<call>{}</call>${END}`, tool('1'), tool('2'))).toBe(
      `\ntool:out 1${END}\ntool:out 2${END}\nA:`,
    );
  });
  test('is what the template makes of all new messages together', async () => {
    const grouped: Write = (message, place, all) => {
      if (message.role !== 'tool') return plain(message, place, all);
      const first = all[place - 1]?.role !== 'tool' ? 'user:' : '';
      const last = all[place + 1]?.role !== 'tool' ? `${END}\n` : '';
      return `${first}[${message.content}]${last}`;
    };
    expect(await after(grouped, END, tool('1'), tool('2'))).toBe(`\nuser:[out 1][out 2]${END}\nA:`);
  });
  test('is refused where a template leaves earlier answers out', async () => {
    const forgetful: Write = (message, place, all) =>
      message.role === 'assistant' ? `assistant:(said)${END}\n` : plain(message, place, all);
    await expect(after(forgetful, END, user)).rejects.toMatchObject({ kind: 'template' });
  });
  test('is refused where it depends on the answer', async () => {
    const quoting = openIncrementer(
      {
        render: async (messages) =>
          encode(messages.map(({ content }) => content).join('') + (messages[1]?.content ?? '')),
      },
      [],
    );
    await expect(quoting.after(undefined, [user], never)).rejects.toMatchObject({ kind: 'template' });
  });
});
