import { execFile } from 'node:child_process';
import { copyFile, readFile, realpath, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { readElf, relink } from './elf.ts';
import { temporaryFolder } from './folder.fixture.ts';

const run = promisify(execFile);
/** The loader prints the libraries of a program instead of starting it. */
const librariesOf = async (program: string): Promise<string[]> => {
  const { stdout } = await run(program, [], { env: { LD_TRACE_LOADED_OBJECTS: '1' } });
  return [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path);
};

/** A program of the system beside its loader and its libraries. */
async function relinked(): Promise<{ folder: string; program: string }> {
  const folder = await realpath(temporaryFolder());
  const bytes = await readFile('/bin/ls');
  for (const path of await librariesOf('/bin/ls')) await copyFile(path, join(folder, basename(path)));
  const interpreter = join(folder, basename(readElf(bytes)?.interpreter ?? ''));
  const program = join(folder, 'program');
  await writeFile(program, relink(bytes, { interpreter, rpath: [folder] }), { mode: 0o755 });
  return { folder, program };
}

test('a relinked program starts with the loader and the libraries of its folder', async () => {
  const { folder, program } = await relinked();
  const { stdout } = await run(program, [folder], { env: { LD_LIBRARY_PATH: '/usr/lib', LC_ALL: 'C' } });
  expect(stdout.split('\n')).toContain('program');
  const loaded = await librariesOf(program);
  expect(loaded.length).toBeGreaterThan(1);
  expect(loaded.filter((path) => !path.startsWith(folder))).toEqual([]);
});

test('relinking keeps the needed libraries and adds those that are loaded first', async () => {
  const bytes = await readFile('/bin/ls');
  const before = readElf(bytes);
  const links = { interpreter: '/a/ld.so', rpath: ['/a/lib', '/b'], needed: ['libfirst.so.1'] };
  expect(readElf(relink(bytes, links))).toEqual({
    ...before,
    interpreter: '/a/ld.so',
    needed: ['libfirst.so.1', ...(before?.needed ?? [])],
    rpath: ['/a/lib', '/b'],
    runpath: [],
  });
});

test('a file that is no ELF file is read as null', () => {
  expect(readElf(Buffer.from('#!/bin/sh\n'))).toBeNull();
  expect(readElf(Buffer.alloc(0))).toBeNull();
});
