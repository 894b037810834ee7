/** Makes small trees and repositories. */
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { words } from './launchers/commands.ts';

/** Writes files by their paths below the folder; scripts are executable. */
export async function writeTree(
  folder: string,
  files: Readonly<Record<string, string | Buffer>>,
): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    const isScript = name.endsWith('.sh') || content.toString().startsWith('#!');
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content, { mode: isScript ? 0o755 : 0o644 });
  }
}

export type Git = (...line: Parameters<typeof words>) => string;

/** Runs git in the folder with a fixed author, and returns the output. */
export const gitIn =
  (folder: string, env: Readonly<Record<string, string>> = {}): Git =>
  (...line) =>
    execFileSync('git', words`-C ${folder} -c user.name=n -c user.email=e@x ${words(...line)}`, {
      encoding: 'utf8',
      env: { ...process.env, ...env },
    });

/** Makes the folder a repository with one commit of all its files. */
export function commitTree(
  folder: string,
  message = 'start',
  env: Readonly<Record<string, string>> = {},
): Git {
  const git = gitIn(folder, env);
  git`init -q -b main`;
  git`add -A`;
  git`commit -qm ${message}`;
  return git;
}

export const headOf = (git: Git): string => git`rev-parse HEAD`.trim();
