import { Duplex, PassThrough } from 'node:stream';
import type { Container } from '@swefarm/sandbox';
import { expect, test } from 'vitest';
import { openTerminal } from './terminal.ts';

test('a closed shell resets the screen, and answers of the terminal are discarded', async () => {
  const [input, output, inner] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const typed = new PassThrough();
  let shown = '';
  const answered = Promise.withResolvers<void>();
  output.on('data', (bytes: Buffer) => {
    shown += bytes;
    if (!shown.endsWith('[0m')) return;
    setImmediate(() => answered.resolve(void input.write('\x1b[?62;22c')));
  });
  const open = async () => Duplex.from({ readable: inner, writable: typed });
  const container = { workdir: '/', open } as unknown as Container;
  const size = () => ({ rows: 24, columns: 80 });
  const screen = { input, output, size, onResize: () => () => undefined };
  const over = openTerminal(container, ':', screen, new AbortController().signal);
  input.write('ls\r');
  await expect.poll(() => typed.read()?.toString()).toBe('ls\r');
  // The program turns modes on, queries the terminal, and is killed.
  inner.end('\x1b[?1049h\x1b[?1003h\x1b[?25l\x1b[c');
  await Promise.all([over, answered.promise]);
  for (const ended of [/\?1049l/, /\?1;.*1003;.*2004l/, /\?7;25h/, /\[0m$/]) expect(shown).toMatch(ended);
  expect([typed.read(), input.read(), input.isPaused()]).toEqual([null, null, true]);
});
