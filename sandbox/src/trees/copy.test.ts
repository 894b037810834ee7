/** Tests who is the cause if a tree cannot be written into a new sandbox. */
import { expect, test } from 'vitest';
import { copyIn } from './copy.ts';

test.each<[string, number | null, string]>([
  ['slow script is infrastructure', null, 'sandbox_start'],
  ['script that fails may have its cause in the tree', 1, 'sandbox_lost'],
])('a %s', async (_, exitCode, failureClass) => {
  const container = {
    exec: async () => ({ exitCode, output: Buffer.from('why'), outputBytes: 3 }) as never,
    putFiles: async () => undefined,
  };
  const tree = { folder: true, entries: [{ path: 'a' }] };
  const writing = copyIn(container, '/out', tree, new AbortController().signal);
  await expect(writing).rejects.toMatchObject({ failureClass });
});
