// Prints the test files of a vitest report that have a failure, one per line, for the second run of CI.
import { failuresOf, readReport } from './report.ts';

const report = readReport(process.argv[2] ?? '');
for (const file of report?.testResults ?? []) {
  if (failuresOf(file).length > 0) console.log(file.name);
}
