// Adds up the checks and vitest's reports to the closing line. A test that failed and then passed in the second run counts as
// passed and is listed as unsteady; a project that left no report, or ran no test, is a failure. Parts that could not be
// installed and skipped tests are listed with the reason; a test that is skipped without a reason is a failure.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { failuresOf, readReport } from './report.ts';

type LeftOut = { file: string; name: string; why: string | null };

const folder = process.argv[2] ?? '.';
const lines = (name: string): string[] =>
  existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean) : [];

let passed = lines('passed').length;
const failed = lines('failed').map((name) => `check: ${name}`);
const unsteady: string[] = [];
let skipped = 0;

for (const project of ['unit', 'redis', 'containers', 'e2e']) {
  const report = readReport(join(folder, `${project}.json`));
  if (!report || report.numTotalTests === 0) {
    failed.push(`vitest project ${project} ${report ? 'ran no test' : 'left no report'}`);
    continue;
  }
  passed += report.numPassedTests;
  skipped += report.numPendingTests + report.numTodoTests;
  const again = readReport(join(folder, `${project}.again.json`));
  for (const file of report.testResults) {
    const first = failuresOf(file);
    if (first.length === 0) continue;
    const second = again?.testResults.find(({ name }) => name === file.name);
    const loaded = file.assertionResults.length > 0;
    if (!second || (second.assertionResults.length === 0 && second.status === 'failed')) {
      failed.push(...first);
      continue;
    }
    const stillFailed = failuresOf(second);
    failed.push(...stillFailed);
    // These tests passed in the first run, where they were counted, and failed in the second run.
    passed -= stillFailed.filter((name) => loaded && !first.includes(name)).length;
    // The first report has no tests of a file that could not be loaded.
    const recovered = loaded
      ? first.filter((name) => !stillFailed.includes(name))
      : second.assertionResults
          .filter(({ status }) => status === 'passed')
          .map(({ fullName }) => `${file.name}: ${fullName}`);
    unsteady.push(...recovered);
    passed += recovered.length;
  }
}

const missing = lines('missing').map((line) => line.replace('\t', ': '));
const tests = new Map(
  lines('leftout').map((line) => {
    const test = JSON.parse(line) as LeftOut;
    return [`${test.file}: ${test.name}`, test.why];
  }),
);
const reasons = [...tests].filter(([, why]) => why !== null).map(([name, why]) => `${name}: ${why}`);
failed.push(
  ...[...tests].filter(([, why]) => why === null).map(([name]) => `${name}: skipped without a reason`),
);
const checks = lines('leftout.checks');

const list = (title: string, names: readonly string[]): void => {
  if (names.length > 0) console.log(`\n${title}\n${names.map((name) => `  ${name}`).join('\n')}`);
};
list('UNSTEADY: failed once, passed in the second run of its file; fix each of them', unsteady);
list('MISSING: programs that could not be installed, and why', missing);
list('LEFT OUT: checks and tests that did not run on this machine, and why', [...checks, ...reasons]);
list('FAILED', failed);
console.log(`\n${passed} passed, ${failed.length} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exitCode = failed.length === 0 ? 0 : 1;
