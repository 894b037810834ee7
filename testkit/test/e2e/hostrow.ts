/** Makes a dataset of one row for runs on the host, which need no image. */
import { join } from 'node:path';
import { writeLines } from '../../src/lines.ts';
import { commitTree, headOf, writeTree } from '../../src/repository.ts';

/** Writes a dataset with one row whose image is a folder with a work tree, for the runtime `host`. */
export async function writeRow(folder: string): Promise<string> {
  const tree = join(folder, 'tree');
  await writeTree(tree, { file: 'one\n' });
  const row = {
    instance_id: 'pallets__flask-1',
    repo: 'pallets/flask',
    base_commit: headOf(commitTree(tree)),
    image: `dir:${tree}`,
    problem_statement: 'It breaks.',
    version: '2.3',
    patch: 'diff --git a/file b/file\n',
    test_patch: '',
    FAIL_TO_PASS: '["test_a.py::test_a"]',
    PASS_TO_PASS: '[]',
  };
  return await writeLines(join(folder, 'rows.jsonl'), [row]);
}
