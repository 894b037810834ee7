// Prints the test files of a vitest report that hold a failure, a line each, for the second run of CI.
import { failuresOf, readReport } from './report.ts';

const report = readReport(process.argv[2] ?? '');
for (const file of report?.testResults ?? []) {
  if (failuresOf(file).length > 0) console.log(file.name);
}
