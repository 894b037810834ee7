/** A dataset of one row for runs on the host, where no image is needed. */
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** One row whose image is a folder with a work tree: what the dry run on the host takes. */
export async function writeRow(folder: string): Promise<string> {
  const tree = join(folder, 'tree');
  const git = 'git -c user.name=t -c user.email=t@t';
  execFileSync('sh', [
    '-c',
    `mkdir "$1" && cd "$1" && echo one > file && git init -q && git add . && ${git} commit -qm one`,
    'sh',
    tree,
  ]);
  const row = {
    instance_id: 'pallets__flask-1',
    repo: 'pallets/flask',
    base_commit: execFileSync('git', ['-C', tree, 'rev-parse', 'HEAD'], { encoding: 'utf8' }).trim(),
    image: `dir:${tree}`,
    problem_statement: 'It breaks.',
    version: '2.3',
    patch: 'diff --git a/file b/file\n',
    test_patch: '',
    FAIL_TO_PASS: '["test_a.py::test_a"]',
    PASS_TO_PASS: '[]',
  };
  const path = join(folder, 'rows.jsonl');
  await writeFile(path, `${JSON.stringify(row)}\n`);
  return path;
}
