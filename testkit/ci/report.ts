// What vitest's JSON reporter writes, as far as CI reads it.
import { existsSync, readFileSync } from 'node:fs';

export type TestResult = { fullName: string; status: string };
export type FileResult = { name: string; status: string; message: string; assertionResults: TestResult[] };
export type VitestReport = {
  numTotalTests: number;
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  testResults: FileResult[];
};

/** Null when vitest left none, which is a failure of its own. */
export const readReport = (file: string): VitestReport | null =>
  existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;

/** Names of the tests of a file that failed; the file's own name when it could not even be loaded. */
export function failuresOf(file: FileResult): string[] {
  const failed = file.assertionResults.filter(({ status }) => status === 'failed');
  if (failed.length > 0) return failed.map(({ fullName }) => `${file.name}: ${fullName}`);
  return file.status === 'failed' ? [`${file.name}: ${file.message.split('\n')[0]}`] : [];
}
