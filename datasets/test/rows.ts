/** Artificial rows for the tests of this folder. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';

/** A complete SWE-bench row; `over` replaces fields, `undefined` removes one. */
export function row(over: Record<string, unknown> = {}): Record<string, unknown> {
  const whole: Record<string, unknown> = {
    repo: 'pallets/flask',
    instance_id: 'pallets__flask-1',
    base_commit: 'a'.repeat(40),
    patch: 'diff --git a/a.py b/a.py\n',
    test_patch: '',
    problem_statement: 'It breaks.',
    hints_text: '',
    created_at: '2024-01-01T00:00:00Z',
    version: '2.3',
    FAIL_TO_PASS: '["tests/test_a.py::test_a"]',
    PASS_TO_PASS: '[]',
    ...over,
  };
  return Object.fromEntries(Object.entries(whole).filter(([, value]) => value !== undefined));
}

/** Writes `content` into a file of a folder that is removed after the test. */
export async function fileWith(name: string, content: string | Uint8Array): Promise<string> {
  const folder = temporaryFolder('dataset');
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

export const lines = (...rows: unknown[]): string => rows.map((one) => `${JSON.stringify(one)}\n`).join('');
