/** Empty folders for tests, which are removed when the test file ends. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const folders: string[] = [];
afterAll(() => {
  for (const path of folders) rmSync(path, { recursive: true, force: true, maxRetries: 5 });
});

export function temporaryFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'swefarm-agents-'));
  folders.push(path);
  return path;
}
