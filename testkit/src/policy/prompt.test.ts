import { readFileSync } from 'node:fs';
import { Tokenizer as HuggingFace } from '@huggingface/tokenizers';
import { describe, expect, it } from 'vitest';
import { generate } from './generation.ts';
import { openPrompter } from './prompt.ts';
import type { Turn } from './script.ts';
import { type ChatMessage, loadTemplate } from './template.ts';
import { loadTokenizer, type Tokens } from './tokenizer.ts';
import { renderTurn, type TurnStyle } from './turntext.ts';

const tokenizer = loadTokenizer();
const flat = (runs: readonly Tokens[]): number[] => runs.flatMap((run) => [...run.ids]);
const style: TurnStyle = { fence: 'bash', sentinel: 'DONE', reasoning: 'content' };
const tools = [{ type: 'function', function: { name: 'bash', parameters: { properties: { command: {} } } } }];

const odd = '  two\n\n\nlines\t— ünï 🎉 \u0000 <think>x</think> <|im_end|> "q" {"a": 1}\n';
const messages: ChatMessage[] = [
  { role: 'system', content: 'You repair programs.\n' },
  { role: 'user', content: `Repair this: ${odd}` },
  { role: 'assistant', content: '<think>\nhm\n</think>\n\nI look.\n\n```bash\nls\n```' },
  { role: 'user', content: odd },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ function: { name: 'bash', arguments: '{"command": "cat ünï"}' } }],
  },
  { role: 'tool', content: '' },
];

describe('the tokenizer', () => {
  it('decodes every byte, and gives the same ids as the library', () => {
    const url = new URL('../../fixtures/tokenizer/tokenizer.json', import.meta.url);
    const library = new HuggingFace(JSON.parse(readFileSync(url, 'utf8')), {});
    const text = messages.map((message) => message.content).join(odd);
    const { ids, json } = tokenizer.encode(text);
    expect(tokenizer.decode(ids)).toBe(text);
    expect([...ids]).toEqual(library.encode(text, { add_special_tokens: false }).ids);
    expect(json).toBe(ids.join(','));
    expect(library.decode([...ids], { skip_special_tokens: false })).toBe(text);
  });

  it('shows a character cut in two as U+FFFD', () => {
    const { ids } = tokenizer.encode('🎉');
    expect(ids.length).toBeGreaterThan(1);
    expect(tokenizer.decode(ids.subarray(0, 1))).toBe('\ufffd');
  });
});

describe.each(['plain', 'strips-thinking'])('prompts by the template %s', (name) => {
  const template = loadTemplate(name);
  const prompter = openPrompter(tokenizer, template);

  it.each([
    ['without tools', []],
    ['with tools', tools],
  ])('are the ids of the whole text, %s', (_, offered) => {
    for (let length = 1; length <= messages.length; length++) {
      const history = messages.slice(0, length);
      const text = prompter.text(history, offered);
      const prompt = prompter.fromMessages(history, offered);
      expect(flat(prompt.runs)).toEqual([...tokenizer.encode(text).ids]);
      expect(prompt.length).toBe(flat(prompt.runs).length);
      expect(tokenizer.decode(flat(prompt.runs))).toBe(text);
    }
  });

  it('begin with exactly the ids that an echoing client sends back', () => {
    const echoed = structuredClone(messages.slice(0, 4));
    const answer = echoed[2] as ChatMessage;
    answer.prompt_token_ids = [11, 12, 13];
    answer.generation_token_ids = [21, 22, prompter.end.id];
    const ids = flat(prompter.fromMessages(echoed, []).runs);
    expect(ids.slice(0, 6)).toEqual([11, 12, 13, 21, 22, prompter.end.id]);
    expect(tokenizer.decode(ids.slice(6))).toBe(
      `\n<|im_start|>user\n${odd}<|im_end|>\n<|im_start|>assistant\n`,
    );
    answer.generation_token_ids = [21, 22];
    expect(flat(prompter.fromMessages(echoed, []).runs)).toEqual(ids);
  });
});

describe('contiguity of a conversation', () => {
  const turns: Turn[] = [
    { think: 'First I look.', thought: 'I look.', command: 'ls -la\ncat "a b"', repeat: 1 },
    { think: 'Now I know.', command: 'echo {}', repeat: 1 },
    { text: 'Just words.', repeat: 1 },
  ];
  const talk = (
    template: string,
    offered: typeof tools,
    reasoning: TurnStyle['reasoning'],
    echo: boolean,
  ): boolean[] => {
    const prompter = openPrompter(tokenizer, loadTemplate(template));
    const history: ChatMessage[] = [{ role: 'user', content: 'Go.' }];
    let seen: number[] = [];
    return turns.map((turn) => {
      const prompt = flat(prompter.fromMessages(history, offered).runs);
      const contiguous = seen.every((id, i) => prompt[i] === id);
      const rendered = renderTurn(turn, offered, { ...style, reasoning });
      const made = generate(rendered, tokenizer, prompter.end.id, 1000, 0);
      const { content, reasoning: thinking, toolCalls } = made.text;
      seen = [...prompt, ...made.tokens.ids];
      history.push({
        role: 'assistant',
        content,
        ...(thinking && { reasoning_content: thinking }),
        ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
        ...(echo && { prompt_token_ids: prompt, generation_token_ids: [...made.tokens.ids] }),
      });
      history.push({ role: offered.length > 0 ? 'tool' : 'user', content: 'seen' });
      if (offered.length > 0) history.push({ role: 'user', content: 'Go on.' });
      return contiguous;
    });
  };

  it.each(['content', 'field'] as const)('holds under plain, thinking in the %s', (reasoning) => {
    expect(talk('plain', [], reasoning, false)).toEqual([true, true, true]);
    expect(talk('plain', tools, reasoning, false)).toEqual([true, true, true]);
  });

  it('breaks under strips-thinking, unless the client echoes the ids', () => {
    expect(talk('strips-thinking', [], 'content', false)).toEqual([true, false, false]);
    expect(talk('strips-thinking', [], 'field', false)).toEqual([true, false, false]);
    expect(talk('strips-thinking', [], 'content', true)).toEqual([true, true, true]);
    expect(talk('strips-thinking', tools, 'field', true)).toEqual([true, true, true]);
  });
});

describe('a generation', () => {
  const end = tokenizer.idOf('<|im_end|>');
  const output = renderTurn({ command: 'echo one two three', thought: 'Ünï 🎉.', repeat: 1 }, tools, style);

  it('ends with the end token, and has the same log-probability in (-5, 0) for each token', () => {
    const made = generate(output, tokenizer, end, 1000, 7);
    expect(tokenizer.decode(made.tokens.ids)).toBe(`${output.raw}<|im_end|>`);
    expect(made.logProbs.length).toBe(made.tokens.ids.length);
    for (const text of made.logProbs) expect(text).toMatch(/^-[0-4]\.\d+$/);
    expect(generate(output, tokenizer, end, 1000, 7).logProbs).toEqual(made.logProbs);
    expect(generate(output, tokenizer, end, 1000, 8).logProbs).not.toEqual(made.logProbs);
    expect(new Set(made.logProbs).size).toBeGreaterThan(5);
  });

  it('cut by the budget is text, has no end token and finishes as length', () => {
    const made = generate(output, tokenizer, end, 9, 7);
    expect(made.tokens.ids.length).toBe(9);
    const content = tokenizer.decode(made.tokens.ids);
    expect(made.text).toMatchObject({ finish: 'length', toolCalls: [], content });
    expect(made.tokens.ids).not.toContain(end);
  });
});
