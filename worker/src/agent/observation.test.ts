import type { CommandResult } from '@swefarm/sandbox';
import { AgentConfig } from '@swefarm/shared';
import { beforeAll, describe, expect, test } from 'vitest';
import { headAndTail, outputCap, parseSubmission, renderObservation } from './observation.ts';
import { openPrompts, type Prompts } from './prompts.ts';

const result = (head: string | Buffer, more: Partial<CommandResult> = {}): CommandResult => {
  const bytes = Buffer.from(head as string);
  return {
    exitCode: 0,
    head: bytes,
    tail: null,
    outputBytes: bytes.length,
    seconds: 0.1,
    note: null,
    ...more,
  };
};
const cut = (more: CommandResult, limit: number) => headAndTail(more, limit, (left) => `<${left}>`);

describe('head and tail', () => {
  test('output within the limit is shown whole, without its last newline', () => {
    expect(cut(result('abc\n'), 10)).toBe('abc');
    expect(cut(result('x'.repeat(10)), 10)).toBe('x'.repeat(10));
  });
  test('longer output keeps both ends and states how much is left out', () => {
    expect(cut(result('0123456789abcdef'), 10)).toBe('01234\n<6 characters>\nbcdef');
  });
  test('a long output that the shell cut at its source', () => {
    const shown = cut(
      result('H'.repeat(20_000), { tail: Buffer.from('T'.repeat(20_000)), outputBytes: 1e9 }),
      10_000,
    );
    expect(shown.startsWith('H'.repeat(5000))).toBe(true);
    expect(shown.endsWith('T'.repeat(5000))).toBe(true);
    expect(shown).toContain('<about 999990000 bytes>');
  });
  test('the limit counts characters: 10,000 of four bytes are shown whole', () => {
    expect(cut(result('é'.repeat(10_000)), 10_000)).toBe('é'.repeat(10_000));
    expect(outputCap(10_000, 'tree', { shortens: false })).toBe(40_000);
  });
  test('neither a surrogate pair nor a UTF-8 sequence is split', () => {
    const shown = cut(result('😀'.repeat(50)), 11);
    expect(shown).toBe('😀😀😀\n<about 180 bytes>\n😀😀');
    const head = Buffer.from('é'.repeat(100)).subarray(0, 121);
    const tail = Buffer.from('é'.repeat(100)).subarray(79);
    const split = cut(result(head, { tail, outputBytes: 4000 }), 60);
    expect(split).toBe(`${'é'.repeat(30)}\n<about 3880 bytes>\n${'é'.repeat(30)}`);
  });
  test('bytes that are not UTF-8 become replacement characters', () => {
    expect(cut(result(Buffer.from([0x61, 0xff, 0xfe, 0x00, 0x62])), 10)).toBe('a\ufffd\ufffd\0b');
  });
});

describe('the observation', () => {
  let prompts: Prompts;
  beforeAll(async () => {
    prompts = await openPrompts(AgentConfig.parse({}), '/testbed');
  });
  const show = (of: CommandResult, repeats = 0) =>
    renderObservation(of, { prompts, limit: 1000, timeoutSeconds: 60, repeats });

  test('exit code and output', () => {
    expect(show(result('hi\n', { exitCode: 3 }))).toBe('<returncode>3</returncode>\n<output>\nhi\n</output>');
  });
  test.each([
    ['timed_out', /after 60 seconds/],
    ['shell_reopened', /new shell was opened/],
    ['killed_by_limit', /more memory or more processes/],
  ] as const)('a note for %s', (note, text) => {
    const shown = show(result('x', { exitCode: null, note }));
    expect(shown).toMatch(/^<returncode>-1</);
    expect(shown).toMatch(text);
  });
  test('a warning for a repeated command', () => expect(show(result('x'), 4)).toMatch(/4 times in a row/));
  test('output is never read as a template', () => {
    expect(show(result('{{returncode}} {{nonsense}}'))).toContain('{{returncode}} {{nonsense}}');
  });
});

describe('the sentinel', () => {
  const S = 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';
  test('first line, exit code 0: the rest is the submission', () => {
    expect(parseSubmission(result(`${S}\ndiff --git\n+x\n`), 'tree')).toEqual({ text: 'diff --git\n+x\n' });
    expect(parseSubmission(result(`\n  ${S} \r\n`), 'tree')).toEqual({ text: '' });
    expect(parseSubmission(result(S), 'tree')).toEqual({ text: '' });
    expect(parseSubmission(result('MINI_SWE_AGENT_FINAL_OUTPUT\np'), 'tree')).toEqual({ text: 'p' });
  });
  test.each([
    ['another exit code', result(`${S}\n`, { exitCode: 1 })],
    ['a killed command', result(`${S}\n`, { exitCode: null })],
    ['not on the first line', result(`ok\n${S}\n`)],
    ['more on its line', result(`${S} x\n`)],
    ['nothing', result('')],
  ])('no submission: %s', (_, of) => expect(parseSubmission(of, 'tree')).toBeNull());
  test('a submission over the limit is too large if it is the patch, else unknown', () => {
    const long = result(`${S}\n${'a'.repeat(100)}`, { tail: Buffer.from('b'.repeat(100)), outputBytes: 1e8 });
    expect(parseSubmission(long, 'tree')).toEqual({ text: null });
    expect(parseSubmission(long, 'submission')?.text).toHaveLength(200);
    expect(outputCap(10_000, 'submission', { shortens: false })).toBeGreaterThan(10 * 1024 ** 2);
  });
});
