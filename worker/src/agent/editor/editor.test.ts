/** What a call shows, and what it leaves in the file. The expectations were recorded against SWE-agent's tool, in our words. */
import { spawnSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { localRun } from '../../../test/agent/localrun.ts';
import { Editor } from './editor.ts';

let folder: string;
let editor: Editor;
beforeEach(() => {
  folder = temporaryFolder('editor');
  editor = new Editor({ workdir: '/testbed', verbatim: false, mostEntries: 10_000 });
});
const at = (name: string): string => join(folder, name);
const call = (command: string, name: string, args: Record<string, unknown> = {}) =>
  editor.call({ command, path: name.startsWith('/') ? name : at(name), ...args }, localRun);
const textOf = async (...args: Parameters<typeof call>): Promise<string> => (await call(...args)).text;
const file = (name: string, text: string | Buffer): string => {
  writeFileSync(at(name), text);
  return at(name);
};
const contents = (name: string): string => readFileSync(at(name), 'utf8');
const LINES = Array.from({ length: 12 }, (_, line) => `line ${line + 1}`).join('\n');

describe('view', () => {
  test('shows a file with numbers of six columns and a tab, tabs expanded', async () => {
    const path = file('a.py', 'def f():\n\treturn 1\n');
    expect(await call('view', 'a.py')).toEqual({
      ok: true,
      text: `Here's the result of running \`cat -n\` on ${path}:\n     1\tdef f():\n     2\t        return 1\n     3\t`,
    });
  });
  test('shows a range; -1 is the end of the file', async () => {
    file('a.txt', LINES);
    expect(await textOf('view', 'a.txt', { view_range: [2, 3] })).toMatch(/:\n {5}2\tline 2\n {5}3\tline 3$/);
    expect(await textOf('view', 'a.txt', { view_range: [11, -1] })).toMatch(
      /:\n {4}11\tline 11\n {4}12\tline 12$/,
    );
  });
  test.each([
    [[0, 1], "[0, 1]: the first line is outside of the file's lines [1, 12]"],
    [[1, 13], "[1, 13]: the last line is beyond the file's 12 lines"],
    [[3, 2], '[3, 2]: the last line is before the first'],
    [[1], 'a list of two whole numbers'],
    ['1-2', 'a list of two whole numbers'],
  ])('refuses the range %j', async (view_range, why) => {
    file('a.txt', LINES);
    const { ok, text } = await call('view', 'a.txt', { view_range });
    expect([ok, text]).toEqual([false, expect.stringContaining(why)]);
  });
  test('clips a text of more than 16,000 characters', async () => {
    file('long.txt', '😀'.repeat(16_001));
    const text = await textOf('view', 'long.txt');
    expect(text.match(/😀/gu)).toHaveLength(16_000);
    expect(text).toContain('😀<response clipped>');
  });
  test('lists two levels of a folder without hidden entries', async () => {
    mkdirSync(at('b/c/d'), { recursive: true });
    mkdirSync(at('.git'));
    file('b/x.py', '');
    const [, ...entries] = (await textOf('view', '.')).split('\n');
    expect(entries).toEqual([folder, at('b'), at('b/c'), at('b/x.py')]);
    expect((await call('view', '.', { view_range: [1, 2] })).ok).toBe(false);
  });
  test('bounds the list of a folder', async () => {
    for (let number = 0; number < 30; number++) file(`file${number}`, '');
    editor = new Editor({ workdir: '/testbed', verbatim: false, mostEntries: 200 });
    const text = await textOf('view', '.');
    expect(text).toContain('<response clipped>');
    expect(text.length).toBeLessThan(700);
  });
});

describe('str_replace', () => {
  test('replaces the only occurrence, and shows four lines around it', async () => {
    const path = file('a.txt', LINES);
    const { ok, text } = await call('str_replace', 'a.txt', { old_str: 'line 7', new_str: 'seven\nseven b' });
    expect(contents('a.txt')).toBe(LINES.replace('line 7', 'seven\nseven b'));
    expect(ok).toBe(true);
    const [head, ...shown] = text.split('\n');
    expect(head).toBe(
      `The file ${path} has been edited. Here's the result of running \`cat -n\` on a snippet of ${path}:`,
    );
    const numbers = shown.slice(0, -1).map((line) => Number.parseInt(line, 10));
    expect(numbers).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(shown[5]).toBe('     7\tseven');
  });
  test('expands tabs and replaces line ends in the whole file, as models know it', async () => {
    file('a.txt', 'a\tb\r\nc\td\r\n');
    await call('str_replace', 'a.txt', { old_str: 'c       d', new_str: 'e' });
    expect(contents('a.txt')).toBe('a       b\ne\n');
  });
  test('verbatim keeps both, and shows tabs', async () => {
    editor = new Editor({ workdir: '/testbed', verbatim: true, mostEntries: 100 });
    file('a.txt', 'a\tb\r\nc\td\r\n');
    expect(await textOf('str_replace', 'a.txt', { old_str: 'c\td', new_str: 'e\tf' })).toContain('\te\tf');
    expect(contents('a.txt')).toBe('a\tb\r\ne\tf\r\n');
  });
  test.each([
    ['absent', 'x', 'does not occur'],
    ['twice', 'line 1', 'in lines [1, 10, 11, 12]'],
    ['over several lines', '\nline 1', 'in lines []'],
    ['empty', '', 'more than once'],
  ])('refuses a text that is %s', async (_, old_str, why) => {
    file('a.txt', LINES);
    const { ok, text } = await call('str_replace', 'a.txt', { old_str, new_str: 'y' });
    expect([ok, text, contents('a.txt')]).toEqual([false, expect.stringContaining(why), LINES]);
  });
  test('without new_str the text is removed; an equal one is refused', async () => {
    file('a.txt', 'a b c');
    expect((await call('str_replace', 'a.txt', { old_str: 'a', new_str: 'a' })).ok).toBe(false);
    await call('str_replace', 'a.txt', { old_str: ' b' });
    expect(contents('a.txt')).toBe('a c');
  });
});

describe('insert, create, undo_edit', () => {
  test.each([
    [0, 'new\nline 1', 1],
    [12, 'line 12\nnew', 9],
  ])('inserts after line %i', async (insert_line, part, first) => {
    file('a.txt', LINES);
    const shown = await textOf('insert', 'a.txt', { insert_line, new_str: 'new' });
    expect(contents('a.txt')).toContain(part);
    expect(shown).toContain(`a snippet of the edited file:\n${String(first).padStart(6)}\t`);
  });
  test('refuses a line outside of the file', async () => {
    file('a.txt', 'one');
    expect(await textOf('insert', 'a.txt', { insert_line: 2, new_str: 'x' })).toContain('[0, 1]');
    expect((await call('insert', 'a.txt', { insert_line: 1.5, new_str: 'x' })).ok).toBe(false);
  });
  test('creates what is not there, in a folder that is', async () => {
    const text = 'it\'s "quoted" $HOME `x` \\n %s\n';
    expect(await textOf('create', 'a b.txt', { file_text: text })).toBe(
      `File created successfully at: ${at('a b.txt')}`,
    );
    expect(contents('a b.txt')).toBe(text);
    expect((await call('create', 'a b.txt', { file_text: 'x' })).text).toContain('exists');
    expect((await call('create', 'no/a.txt', { file_text: 'x' })).text).toContain('does not exist');
    expect((await call('create', 'c.txt')).text).toContain('file_text');
  });
  test('undoes edits one by one', async () => {
    file('a.txt', 'one');
    await call('str_replace', 'a.txt', { old_str: 'one', new_str: 'two' });
    await call('insert', 'a.txt', { insert_line: 0, new_str: 'zero' });
    expect((await call('undo_edit', 'a.txt')).ok).toBe(true);
    expect(contents('a.txt')).toBe('two');
    expect(await textOf('undo_edit', `${folder}//./a.txt`)).toContain('     1\tone');
    expect(contents('a.txt')).toBe('one');
    expect(await call('undo_edit', 'a.txt')).toMatchObject({ ok: false });
  });
});

describe('hostile paths and contents', () => {
  const NAME = `-n '$(touch owned)' "\`id\`" \\ \n;é`;
  test('names are no shell text', async () => {
    expect((await call('create', NAME, { file_text: 'a' })).ok).toBe(true);
    expect((await call('str_replace', NAME, { old_str: 'a', new_str: '$(touch owned)' })).ok).toBe(true);
    expect(contents(NAME)).toBe('$(touch owned)');
    expect(() => statSync(at('owned'))).toThrow();
  });
  test('a link is followed, and stays; the mode stays', async () => {
    file('script.sh', 'one\n');
    chmodSync(at('script.sh'), 0o755);
    symlinkSync('script.sh', at('link'));
    await call('str_replace', 'link', { old_str: 'one', new_str: 'two' });
    expect([contents('script.sh'), statSync(at('script.sh')).mode & 0o777]).toEqual(['two\n', 0o755]);
    expect(lstatSync(at('link')).isSymbolicLink()).toBe(true);
  });
  test('bytes that are not UTF-8 are Latin-1 in both directions', async () => {
    const path = file('latin.txt', Buffer.from('caf\xe9 \\ \0 one', 'latin1'));
    expect(await textOf('view', 'latin.txt')).toContain('café');
    await call('str_replace', 'latin.txt', { old_str: 'one', new_str: 'naïve' });
    expect(readFileSync(path, 'latin1')).toBe('caf\xe9 \\ \0 na\xefve');
    expect(await textOf('str_replace', 'latin.txt', { old_str: 'caf', new_str: '日' })).toContain('Latin-1');
    expect(readFileSync(path, 'latin1')).toContain('caf');
  });
  test('pipes, folders, huge files and unknown commands are mistakes', async () => {
    spawnSync('sh', ['-c', 'mkfifo pipe; truncate -s 100M huge'], { cwd: folder });
    const texts = await Promise.all([
      textOf('view', 'pipe'),
      textOf('view', 'huge'),
      textOf('insert', '.', { insert_line: 0, new_str: '' }),
      textOf('view', 'missing'),
      textOf('view', '/a\0b'),
      editor.call({ command: 'view', path: 'src/a.py' }, localRun).then(({ text }) => text),
      textOf('delete', 'huge'),
    ]);
    expect(texts.slice(0, 6)).toEqual([
      expect.stringContaining('no regular file'),
      expect.stringContaining('more than'),
      expect.stringContaining('is a directory'),
      expect.stringContaining('does not exist'),
      expect.stringContaining('does not exist'),
      expect.stringContaining('/testbed/src/a.py'),
    ]);
    file('a.txt', '');
    expect(await textOf('delete', 'a.txt')).toContain('view, create, str_replace, insert, undo_edit');
  });
  test('an error shows at most 16,000 characters of what the model wrote', async () => {
    file('a.txt', '');
    const { text } = await call('str_replace', 'a.txt', { old_str: 'x'.repeat(1e6), new_str: '' });
    expect(text.length).toBe(16_000);
  });
});
