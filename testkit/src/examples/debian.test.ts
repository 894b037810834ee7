import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/temporaryfolder.ts';
import { configuredMirror } from './debian.ts';

let apt: string;
beforeEach(async () => {
  apt = temporaryFolder('apt');
  await mkdir(join(apt, 'sources.list.d'));
});

test('the mirror is read from a one-line source with options', async () => {
  await writeFile(
    join(apt, 'sources.list'),
    '# deb http://old.example/debian bookworm main\ndeb http://sec.example/debian-security bookworm-security main\n' +
      'deb [arch=amd64 signed-by=/k.gpg] https://mirror.example/debian/ bookworm main\n',
  );
  expect(await configuredMirror(apt, 'bookworm')).toBe('https://mirror.example/debian');
});

test('the mirror is read from a stanza; disabled and other suites are skipped', async () => {
  await writeFile(
    join(apt, 'sources.list.d/debian.sources'),
    [
      'Types: deb\nURIs: http://off.example/debian\nSuites: bookworm\nEnabled: no',
      'Types: deb\nURIs: http://other.example/debian\nSuites: trixie',
      'Types: deb\nURIs: http://here.example/debian\nSuites: bookworm bookworm-updates\nComponents: main',
    ].join('\n\n'),
  );
  expect(await configuredMirror(apt, 'bookworm')).toBe('http://here.example/debian');
});

test('there is no mirror if apt has no source', async () => {
  expect(await configuredMirror(join(apt, 'nowhere'), 'bookworm')).toBeNull();
});
