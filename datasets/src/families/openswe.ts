/**
 * Reads rows of OpenSWE, which contain the whole evaluation as a script that prints the exit code of the tests. Rows whose script applies
 * the fix itself are refused, because every patch would be resolved.
 */
import type { FieldReader } from '../fields/fields.ts';
import { withTag } from '../fields/image.ts';
import type { Family, InstanceDraft } from './family.ts';
import { imageOr, issue, SWEBENCH_APPLY } from './planned.ts';

export const openSwe: Family = {
  name: 'open-swe',
  columns: ['eval_script'],
  fits: ({ eval_script }) => typeof eval_script === 'string' && eval_script.includes('OPENSWE_EXIT_CODE='),
  read: readOpen,
};

const filesChangedBy = (script: string): string[] =>
  [...script.matchAll(/^(?:diff --git a\/.+? b\/|\+\+\+ (?:b\/)?)([^\t\r\n]+)/gm)].map(([, name = '']) =>
    name.trim(),
  );

/** Matches paths of test files. Used for files that neither patch of the row changes. */
const OF_TESTS = /(^|\/)tests?(ing)?\/|(^|\/)(test_[^/]*|[^/]*_test\.\w+|conftest\.py)$|^\/dev\/null$/i;

const TESTS_ALONE = 'a script that changes tests alone';

/** Returns the script of the row. Refuses a script that changes files other than tests. */
function scriptOf(read: FieldReader): string {
  const script = read.text('eval_script', 'export the whole row');
  const { patch, test_patch } = read.texts('patch', 'test_patch');
  const [ofFix, ofTests] = [patch, test_patch].map((text) => new Set(filesChangedBy(text)));
  const own = filesChangedBy(script).find(
    (name) => !ofTests?.has(name) && (ofFix?.has(name) || !OF_TESTS.test(name)),
  );
  if (own !== undefined)
    read.refuse('its eval_script applies the fix itself', 'eval_script', TESTS_ALONE, own);
  return script;
}

function readOpen(read: FieldReader): InstanceDraft {
  return {
    instance_id: read.id(),
    repo: read.repo(),
    base_commit: read.optionalText('base_commit') || 'HEAD',
    problem_statement: issue(read),
    ...read.texts('patch', 'test_patch'),
    FAIL_TO_PASS: [],
    PASS_TO_PASS: [],
    family: 'open-swe',
    image: withTag(imageOr(read, null)),
    environment: {},
    plan: {
      grader: 'open-swe',
      apply: SWEBENCH_APPLY,
      script: scriptOf(read),
      outcomes: { from: 'exit_code', pattern: 'OPENSWE_EXIT_CODE=(\\d+)' },
      verdict: { rule: 'exit_code' },
    },
  };
}
