/** Plans the evaluation of an instance: takes the plan of the row, or else makes a plan from the columns of the row. */
import { type Instance, type InstancePlan, SwefarmError } from '@swefarm/shared';
import { isDialect, parserName, parserNames } from '../dialects/registry.ts';
import type { Dialect } from '../parsers/reader.ts';
import { readExitPattern } from '../text/exitpattern.ts';
import { forkScript, latestScript, recordExitCode, swebenchScript } from './evalscript.ts';
import { APPLICATION, DIALECT, type GraderChoice, type GraderName } from './graders.ts';
import { harborPlan } from './harbor.ts';
import { evalTypeOf, specOf } from './specs.ts';

/**
 * Returns the plan of the row, or makes a plan. `auto` selects swebench 5.0.2 for rows with eval_script, log_parser and eval_type, 4.1.0
 * for other rows with eval_script or test_cmd, and else the grader of the family. With `recordExitCode` (default: true), scripts that are
 * made from columns print the exit code of the tests, which `trust` compares with the log; verdicts do not change.
 *
 * @throws SwefarmError `instance_invalid` with the fields that the row lacks, or the unknown part of the plan
 */
export function planEvaluation(
  instance: Instance,
  choice: GraderChoice = 'auto',
  options: { recordExitCode?: boolean } = {},
): InstancePlan {
  if (instance.harbor) return harborPlan(instance.harbor);
  if (instance.plan) return ownPlan(instance, instance.plan, choice);
  const grader = choice === 'auto' ? graderOf(instance) : choice;
  if (instance.family === 'swesmith')
    refuse(
      instance,
      'a row of SWE-smith needs a plan of its own, and has none: read the dataset again with this version',
    );
  if (instance.FAIL_TO_PASS.length + instance.PASS_TO_PASS.length === 0)
    refuse(instance, 'no FAIL_TO_PASS and no PASS_TO_PASS');
  const { parser, script } = scriptOf(instance, grader, options.recordExitCode ?? true);
  const dialect = DIALECT[grader];
  return {
    grader,
    before: [],
    ...APPLICATION[grader],
    unapplied: 'ends',
    after: [],
    script,
    files: [],
    outcomes: { from: 'log', dialect, parser: requireParser(instance, parser, dialect, grader) },
    verdict: { rule: ruleOf(instance, grader) },
  };
}

function requireParser(instance: Instance, parser: string, dialect: Dialect, grader: string): string {
  const name = parserName(parser, dialect);
  if (name !== null) return name;
  const names = parserNames(dialect).join(', ');
  refuse(instance, `log parser "${parser}" is unknown to ${grader} (known: ${names})`);
}

/** Whether there is no patch to evaluate. Most harnesses treat white space as no patch; a plan may apply white space. */
export const isNoPatch = (patch: string, plan: Pick<InstancePlan, 'blank'> | null): boolean =>
  patch === '' || (patch.trim() === '' && plan?.blank !== 'applied');

const NO_CHANGE =
  'diff --git a/swefarm-untouched.txt b/swefarm-untouched.txt\nnew file mode 100644\n--- /dev/null\n+++ b/swefarm-untouched.txt\n@@ -0,0 +1 @@\n+Nothing else is changed.\n';

/** Returns a patch for evaluating the unchanged tree: empty, or an unrelated new file if the plan runs no tests for an empty patch. */
export const untouchedPatch = (plan: Pick<InstancePlan, 'blank'> | null): string =>
  plan?.blank === 'ends' ? NO_CHANGE : '';

/** Returns the name of the log parser; null if the outcomes come from another source. */
export const parserOf = ({ outcomes }: Pick<InstancePlan, 'outcomes'>): string | null =>
  outcomes.from === 'log' ? outcomes.parser : null;

function ownPlan(instance: Instance, plan: InstancePlan, choice: GraderChoice): InstancePlan {
  if (choice !== 'auto' && choice !== plan.grader && !plan.grader.startsWith(`${choice}-`))
    refuse(instance, `its row is graded as ${plan.grader}, and not by --grader ${choice}; leave that out`);
  const { outcomes } = plan;
  if (outcomes.from === 'exit_code' && outcomes.pattern !== undefined && !readExitPattern(outcomes.pattern))
    refuse(
      instance,
      `plan.outcomes.pattern: expected plain text around one group of digits, as CODE=(\\d+), found ${JSON.stringify(outcomes.pattern.slice(0, 80))}`,
    );
  if (outcomes.from !== 'log') return plan;
  const { dialect } = outcomes;
  if (!isDialect(dialect)) refuse(instance, `plan.outcomes.dialect: "${dialect}" is unknown`);
  const parser = requireParser(instance, outcomes.parser, dialect, plan.grader);
  return { ...plan, outcomes: { ...outcomes, parser } };
}

function refuse({ instance_id }: Instance, why: string): never {
  throw new SwefarmError('instance_invalid', `${instance_id}: ${why}`);
}

function graderOf(instance: Instance): GraderName {
  if (instance.eval_script !== undefined) {
    const latest = instance.log_parser !== undefined && instance.eval_type !== undefined;
    return latest ? 'swebench-5.0.2' : 'swebench-4.1.0';
  }
  return instance.family === 'swegym' && instance.test_cmd === undefined ? 'swegym' : 'swebench-4.1.0';
}

function ruleOf(instance: Instance, grader: GraderName): InstancePlan['verdict']['rule'] {
  if (evalTypeOf(instance, grader) === 'fail_only') return 'fail_only';
  return grader === 'swebench-5.0.2' ? 'swebench-5' : 'swebench';
}

function scriptOf(
  instance: Instance,
  grader: GraderName,
  records: boolean,
): { parser: string; script: string } {
  const recorded = (text: string): string => (records ? recordExitCode(text) : text);
  const spec = specOf(instance, grader === 'swegym' ? 'swegym' : 'swebench');
  const { parser } = spec;
  // swebench 5.0.2 always records the exit code.
  if (grader === 'swebench-5.0.2') return { parser, script: recordExitCode(latestScript(instance, spec)) };
  if (instance.eval_script !== undefined) return { parser, script: recorded(instance.eval_script) };
  if (grader === 'swegym') return { parser, script: forkScript(instance, spec, records) };
  return { parser, script: recorded(swebenchScript(instance, spec)) };
}
