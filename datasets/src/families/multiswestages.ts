/** Reads the status of each test in the three stages of a Multi-SWE row: original code (`run`), with the tests, and with the fix. */
import { asObject, type FieldReader, isTextList, type Row } from '../fields/fields.ts';

type Statuses = { run: string; test: string; fix: string };
export type Stages = Record<string, Statuses & { class?: 'p2p' | 'f2p' | 's2p' | 'n2p' }>;

const RESULTS = { run: 'run_result', test: 'test_patch_result', fix: 'fix_patch_result' } as const;
const CLASSES = {
  fixed_tests: null,
  p2p_tests: 'p2p',
  f2p_tests: 'f2p',
  s2p_tests: 's2p',
  n2p_tests: 'n2p',
} as const;
const LISTS = { passed_tests: 'PASS', failed_tests: 'FAIL', skipped_tests: 'SKIP' } as const;
const STATUSES = ['PASS', 'FAIL', 'SKIP', 'NONE'];

/** Reads the results of the stages, then the lists by class (`CLASSES`), which override the results. */
export function stagesOf(read: FieldReader): Stages {
  const found = new Map<string, Stages[string]>();
  const at = (name: string): Stages[string] => {
    const known = found.get(name) ?? { run: 'NONE', test: 'NONE', fix: 'NONE' };
    found.set(name, known);
    return known;
  };
  for (const [stage, column] of Object.entries(RESULTS)) {
    const result = asObject(read.row[column]);
    for (const [list, status] of Object.entries(LISTS)) {
      const names = result?.[list] ?? [];
      if (isTextList(names)) for (const name of names) at(name)[stage as keyof typeof RESULTS] = status;
      else read.complain(`${column}.${list}`, 'a list of test names', names, 'export the whole row');
    }
  }
  for (const [column, own] of Object.entries(CLASSES)) {
    for (const [name, statuses] of entriesOf(read, column))
      Object.assign(at(name), statuses, own === null ? {} : { class: own });
  }
  const passing = [...found.values()].some(({ fix }) => fix === 'PASS');
  if (!passing && read.problems.length === 0)
    read.refuse('no test that its fix passes', 'fix_patch_result', 'a test', undefined);
  return Object.fromEntries(found);
}

/** Reads one list of tests in either form: `name → {run, test, fix}`, or columns `{name: […], run: […], test: […], fix: […]}`. */
function entriesOf(read: FieldReader, column: string): [string, Statuses][] {
  const given = read.row[column] ?? null;
  if (given === null) return [];
  const value = asObject(given);
  if (!value) {
    read.complain(column, 'an object', given, 'export the whole row');
    return [];
  }
  return isColumns(value)
    ? value.name.map((name, at): [string, Statuses] => [
        name,
        statusesOf(read, column, { run: value.run?.[at], test: value.test?.[at], fix: value.fix?.[at] }),
      ])
    : Object.entries(value)
        // In parquet, the struct of each row has a member for every test name in the file: null for tests of other rows.
        .filter(([, statuses]) => statuses !== null)
        .map(([name, statuses]) => [name, statusesOf(read, column, asObject(statuses) ?? {})]);
}

type Columns = { name: string[] } & Partial<Record<keyof Statuses, unknown[]>>;

const isColumns = (value: Row): value is Columns =>
  isTextList(value.name) && [value.run, value.test, value.fix].every(Array.isArray);

function statusesOf(read: FieldReader, column: string, given: Row): Statuses {
  const status = (stage: keyof Statuses): string => {
    const value = given[stage];
    if (typeof value === 'string' && STATUSES.includes(value)) return value;
    if (!read.complainedOf(column)) read.complain(column, STATUSES.join(', '), value, 'export the whole row');
    return 'NONE';
  };
  return { run: status('run'), test: status('test'), fix: status('fix') };
}
