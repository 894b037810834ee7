import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { generateScript } from './generate.ts';
import { openPrompter } from './prompt.ts';
import { readScript } from './script.ts';
import { type ChatMessage, loadTemplate } from './template.ts';
import { loadTokenizer } from './tokenizer.ts';
import { renderTurn } from './turntext.ts';

it.each([
  [20, 8_000],
  [88, 60_000],
])('%i turns grow to %i tokens when their commands are really run', (turns, targetTokens) => {
  const tokenizer = loadTokenizer();
  const prompter = openPrompter(tokenizer, loadTemplate('plain'));
  const script = readScript(generateScript({ turns, targetTokens, openingTokens: 500, variants: 2 }));
  const variant = script.conversations[0]?.variants[1] ?? [];
  expect(variant.length).toBe(turns);
  const commands = variant.flatMap(({ command }) => command ?? []);
  const shell = commands.map((command) => `${command}\nprintf '\\036'`).join('\n');
  const outputs = execFileSync('bash', ['-c', shell], { encoding: 'utf8' }).split('\u001e');
  const messages: ChatMessage[] = [{ role: 'user', content: 'word '.repeat(490) }];
  for (const [i, turn] of variant.entries()) {
    messages.push({
      role: 'assistant',
      content: renderTurn(turn, [], { ...script, reasoning: 'content' }).content,
    });
    const content = `<returncode>0</returncode>\n<output>\n${outputs[i]}</output>`;
    if (turn.submit === undefined) messages.push({ role: 'user', content });
    expect(content.length).toBeLessThan(10_000);
  }
  const { length } = prompter.fromMessages(messages, []);
  expect(Math.abs(length - targetTokens)).toBeLessThan(targetTokens * 0.05);
});
