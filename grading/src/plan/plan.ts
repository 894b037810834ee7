/** Plans how a worker evaluates one instance: the commands that apply the patch, the script to run, the parser of the log. */
import { type Instance, SwefarmError } from '@swefarm/shared';
import type { Dialect } from '../parsers/reader.ts';
import { parserName, parserNames } from '../parsers/registry.ts';
import { forkScript, latestScript, recordExitCode, smithScript, swebenchScript } from './evalscript.ts';
import type { ApplyAttempt, EvaluationPlan, GraderChoice, GraderName } from './evaluationplan.ts';
import { specOf } from './specs.ts';

const PATCH = '/tmp/patch.diff';

const attempt = (command: string): ApplyAttempt => ({ name: command, argv: [...command.split(' '), PATCH] });

const SWEBENCH_APPLY = [
  'git apply --verbose',
  'git apply --verbose --reject',
  'patch --batch --fuzz=5 -p1 -i',
];

/** The exact order matters: 4.1.0 tries `patch` on the tree that a failed `--reject` left, 5.0.2 resets it first. */
const APPLY: Record<GraderName, Pick<EvaluationPlan, 'apply' | 'resetBetween' | 'alreadyApplied'>> = {
  'swebench-4.1.0': { apply: SWEBENCH_APPLY.map(attempt), resetBetween: [], alreadyApplied: null },
  'swebench-5.0.2': {
    apply: [
      'git apply --verbose',
      'git apply --verbose --3way',
      'git apply --verbose --reject',
      'patch --batch --forward --fuzz=5 -p1 -i',
    ].map(attempt),
    resetBetween: [['/bin/bash', '-c', 'git checkout -- . ; git clean -fd']],
    alreadyApplied: ['git', 'apply', '--check', '--reverse', PATCH],
  },
  swegym: {
    apply: ['git apply --allow-empty -v', 'patch --batch --fuzz=5 -p1 -i'].map(attempt),
    resetBetween: [],
    alreadyApplied: null,
  },
  swesmith: { apply: SWEBENCH_APPLY.map(attempt), resetBetween: [], alreadyApplied: null },
};

export const DIALECT: Record<GraderName, Dialect> = {
  'swebench-4.1.0': '4.1.0',
  'swebench-5.0.2': '5.0.2',
  swegym: 'swegym',
  swesmith: 'swesmith',
};

const SMITH_COMMAND = [
  'source /opt/miniconda3/bin/activate; conda activate testbed; pytest --disable-warnings --color=no --tb=no --verbose',
];

/**
 * `auto` depends on the row: rows of 5.x (eval_script, log_parser and eval_type) use 5.0.2, rows with a test command or script of
 * their own use 4.1.0, all others their family's grader.
 *
 * `recordExitCode` (default) adds to every script the two lines by which 5.0.2 records the exit code of the tests: verdicts do not
 * change, and `trust` can compare the exit code with the log. Without it the script is identical to the harness's.
 *
 * @throws SwefarmError `instance_invalid` that names the fields the row lacks
 */
export function planEvaluation(
  instance: Instance,
  choice: GraderChoice = 'auto',
  options: { recordExitCode?: boolean } = {},
): EvaluationPlan {
  const grader = choice === 'auto' ? graderOf(instance) : choice;
  if (instance.FAIL_TO_PASS.length + instance.PASS_TO_PASS.length === 0) {
    throw new SwefarmError(
      'instance_invalid',
      `${instance.instance_id}: no FAIL_TO_PASS and no PASS_TO_PASS`,
    );
  }
  const { parser, evalScript } = scriptOf(instance, grader, options.recordExitCode ?? true);
  const known = parserName(parser, DIALECT[grader]);
  if (known === null) {
    const names = parserNames(DIALECT[grader]).join(', ');
    throw new SwefarmError(
      'instance_invalid',
      `${instance.instance_id}: log_parser "${parser}" is unknown to ${grader} (known: ${names})`,
    );
  }
  return { grader, parser: known, ...APPLY[grader], ...prepare(instance, grader), evalScript };
}

/**
 * Whether a patch contains nothing to evaluate. Most harnesses treat blank text as no patch; the fork's `git apply --allow-empty`
 * accepts it as a patch that changes nothing, and the tests run.
 */
export const isNoPatch = (patch: string, grader: GraderName | null): boolean =>
  patch === '' || (patch.trim() === '' && grader !== 'swegym');

function graderOf(instance: Instance): GraderName {
  if (instance.family === 'swesmith') return 'swesmith';
  if (instance.eval_script !== undefined) {
    const latest = instance.log_parser !== undefined && instance.eval_type !== undefined;
    return latest ? 'swebench-5.0.2' : 'swebench-4.1.0';
  }
  return instance.family === 'swegym' && instance.test_cmd === undefined ? 'swegym' : 'swebench-4.1.0';
}

function scriptOf(
  instance: Instance,
  grader: GraderName,
  records: boolean,
): Pick<EvaluationPlan, 'parser' | 'evalScript'> {
  const recorded = (text: string): string => (records ? recordExitCode(text) : text);
  if (grader === 'swesmith') {
    const own = instance.test_cmd;
    const commands = own === undefined ? SMITH_COMMAND : typeof own === 'string' ? [own] : own;
    const evalScript = recorded(instance.eval_script ?? smithScript(instance, commands));
    return { parser: instance.log_parser ?? 'smith_pytest', evalScript };
  }
  const spec = specOf(instance, grader === 'swegym' ? 'swegym' : 'swebench');
  const { parser } = spec;
  // 5.0.2 records the exit code itself.
  if (grader === 'swebench-5.0.2')
    return { parser, evalScript: recordExitCode(latestScript(instance, spec)) };
  if (instance.eval_script !== undefined) return { parser, evalScript: recorded(instance.eval_script) };
  if (grader === 'swegym') return { parser, evalScript: forkScript(instance, spec, records) };
  return { parser, evalScript: recorded(swebenchScript(instance, spec)) };
}

/** SWE-smith keeps the bug on a branch whose last commit only hides the tests: the tree before that commit is graded. */
function prepare(instance: Instance, grader: GraderName): Pick<EvaluationPlan, 'prepare'> {
  if (grader !== 'swesmith') return {};
  return {
    prepare: [
      ['git', 'checkout', instance.base_commit],
      ['git', 'checkout', 'HEAD~1'],
    ],
  };
}
