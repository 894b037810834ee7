import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { softwareVersion, versionAt } from './version.ts';

const COMMIT = '3dcab5098b5357c41f0f4b7b2e3c2a1d00998877';

function root(files: Record<string, string>): string {
  const path = temporaryFolder('version');
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

const PACKAGE = { 'shared/package.json': '{"version":"1.2.3"}' };

test.each<[string, Record<string, string>, string]>([
  [
    'a branch',
    { ...PACKAGE, '.git/HEAD': 'ref: refs/heads/main\n', '.git/refs/heads/main': `${COMMIT}\n` },
    '1.2.3+3dcab5098b53',
  ],
  [
    'a packed branch',
    {
      ...PACKAGE,
      '.git/HEAD': 'ref: refs/heads/main\n',
      '.git/packed-refs': `# pack\n${COMMIT} refs/heads/main\n`,
    },
    '1.2.3+3dcab5098b53',
  ],
  ['a commit alone', { ...PACKAGE, '.git/HEAD': `${COMMIT}\n` }, '1.2.3+3dcab5098b53'],
  [
    'a worktree',
    {
      ...PACKAGE,
      '.git': 'gitdir: main/w\n',
      'main/w/HEAD': 'ref: refs/heads/w\n',
      'main/w/commondir': '..\n',
      'main/refs/heads/w': COMMIT,
    },
    '1.2.3+3dcab5098b53',
  ],
  [
    'a bundle',
    { 'package.json': '{"version":"1.2.3"}', 'bundle-id': '0123456789abcdef\n' },
    '1.2.3+0123456789ab',
  ],
  ['a package without history', PACKAGE, '1.2.3'],
  ['nothing that can be read', { 'package.json': '{', '.git/HEAD': 'ref: refs/heads/gone' }, 'unknown'],
])('%s', (_, files, version) => {
  expect(versionAt(root(files))).toBe(version);
});

test('this checkout has a version', () => {
  expect(softwareVersion()).toMatch(/^\d+\.\d+\.\d+(\+[0-9a-f]{12})?$/);
});
