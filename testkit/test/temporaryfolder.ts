import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders = new Set<string>();

/** Creates an empty folder. vitest removes it when the test file has ended (removefolders.ts). */
export function temporaryFolder(name = 'test'): string {
  const path = mkdtempSync(join(tmpdir(), `swefarm-${name}-`));
  folders.add(path);
  return path;
}

export function removeTemporaryFolders(): void {
  for (const path of folders) rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  folders.clear();
}
