/** Compares the table of evaluations in docs/datasets.md with the plans of each family. */
import { readFileSync } from 'node:fs';
import { planEvaluation } from '@swefarm/grading';
import type { Instance } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeAll, expect, test } from 'vitest';
import { FAMILY_ROWS, writeProFiles } from '../../test/familyrows.ts';
import { row } from '../../test/rows.ts';
import { toInstance } from '../row.ts';

let familyFiles: string;
beforeAll(async () => {
  familyFiles = temporaryFolder('evaluations');
  await writeProFiles(familyFiles);
});

const page = readFileSync(new URL('../../../docs/datasets.md', import.meta.url), 'utf8');
const [, table = ''] = /## How a patch of each family is evaluated[\s\S]*?\n((?:\|.*\n)+)/.exec(page) ?? [];
/** Family or grader → folder, limit, empty patch, inapplicable patch, rule. */
const documented = new Map(
  table.split('\n').flatMap((line) => {
    const [, families = '', ...cells] = line.split('|').map((cell) => cell.trim());
    const [folder, limit, nothing, unapplied, rule = ''] = cells;
    const values = [folder?.replaceAll('`', ''), limit, nothing, unapplied, /^`(\w+)`/.exec(rule)?.[1]];
    return Array.from(families.matchAll(/`([\w-]+)`/g), ([, name = '']) => [name, values] as const);
  }),
);

const WORDS = { ends: 'ends', tests_run: 'tests run', applied: 'tests run' } as const;

function planned(instance: Instance): unknown[] {
  const folder = (instance.environment?.workdir ?? '/testbed').replace(/calc$/i, 'REPO');
  const plan = planEvaluation(instance);
  const limit = plan.timeout === undefined ? '–' : String(plan.timeout);
  return [folder, limit, WORDS[plan.blank], WORDS[plan.unapplied], plan.verdict.rule];
}

const COLUMN_ROWS = {
  swebench: row({}),
  swegym: row({ repo: 'getmoto/moto', instance_id: 'getmoto__moto-1', version: '4.1' }),
};

test.each(Object.entries({ ...FAMILY_ROWS, ...COLUMN_ROWS }))(
  'a row of %s is evaluated as the page documents',
  (_name, given) => {
    const found = toInstance('line 1', given, { familyFiles });
    if ('problems' in found) throw new Error(JSON.stringify(found.problems));
    const { grader } = planEvaluation(found.instance);
    // A family with rows of several graders has a line for each grader.
    expect(documented.get(grader) ?? documented.get(found.instance.family)).toEqual(planned(found.instance));
  },
);
