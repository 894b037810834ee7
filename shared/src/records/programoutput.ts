/** Parses the output of a dataset's program: JSON in one of three forms, of limited size. */
import { z } from 'zod';
import type { OutcomeSource } from './plan.ts';

export type ProgramSource = Extract<OutcomeSource, { from: 'program' }>;

const MOST_TESTS = 200_000;
const MOST_LETTERS = 4_000;
const STATUS_LETTERS = 40;

const name = z.string().max(MOST_LETTERS);
const status = z.string().max(STATUS_LETTERS);
const names = z.array(name).max(MOST_TESTS);

export type TestPair = readonly [test: string, status: string];

const all = (tests: readonly string[], status: string) => tests.map((test): TestPair => [test, status]);

const FORMS: Record<ProgramSource['form'], z.ZodType<TestPair[]>> = {
  tests: z
    .object({ tests: z.array(z.object({ name, status })).max(MOST_TESTS) })
    .transform(({ tests }) => tests.map((one): TestPair => [one.name, one.status])),
  map: z.record(name, status).transform((tests): TestPair[] => Object.entries(tests)),
  sets: z
    .object({ passed_tests: names, failed_tests: names, skipped_tests: names })
    .transform((sets) =>
      all(sets.passed_tests, 'PASS').concat(all(sets.failed_tests, 'FAIL'), all(sets.skipped_tests, 'SKIP')),
    ),
};

/** Returns each test with the status that the program wrote, or a problem. Statuses of `sets` are PASS, FAIL and SKIP. */
export function parseProgramOutput(
  text: string,
  form: ProgramSource['form'],
): { tests: TestPair[] } | { problem: string } {
  try {
    const tests = FORMS[form].parse(JSON.parse(text));
    if (tests.length > MOST_TESTS) return { problem: `it names more than ${MOST_TESTS} tests` };
    return { tests };
  } catch (error) {
    if (error instanceof SyntaxError) return { problem: 'it is not JSON' };
    if (error instanceof z.ZodError) return { problem: describe(error, form) };
    throw error;
  }
}

function describe(error: z.ZodError, form: string): string {
  const [issue] = error.issues;
  const where = issue?.path.slice(0, 3).join('.').slice(0, 60) ?? '';
  return `it is not of the form "${form}"${where === '' ? '' : ` (${where})`}: ${issue?.message ?? 'unknown'}`;
}
