// Reads the fields of vitest's JSON reports that CI uses.
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

/** Returns the report; null: the file does not exist, which the caller counts as a failure. */
export const readReport = (file: string): VitestReport | null =>
  existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;

/** Returns the names of the failed tests of a file; for a file that could not be loaded, its name with the error. */
export function failuresOf(file: FileResult): string[] {
  const failed = file.assertionResults.filter(({ status }) => status === 'failed');
  if (failed.length > 0) return failed.map(({ fullName }) => `${file.name}: ${fullName}`);
  return file.status === 'failed' ? [`${file.name}: ${file.message.split('\n')[0]}`] : [];
}
