/** Plans how a worker evaluates one instance: by the plan that its row brought, else by its columns. */
import { type Instance, type InstancePlan, SwefarmError } from '@swefarm/shared';
import { isDialect, parserName, parserNames } from '../dialects/registry.ts';
import { readExitPattern } from '../text/exitpattern.ts';
import { forkScript, latestScript, recordExitCode, swebenchScript } from './evalscript.ts';
import { APPLICATION, DIALECT, type GraderChoice, type GraderName } from './graders.ts';
import { evalTypeOf, specOf } from './specs.ts';
import { isRuleKnown, isSourceRead } from './supported.ts';

/**
 * An instance that has a plan is evaluated by it. For the others `auto` depends on the row: rows of 5.x (eval_script, log_parser and
 * eval_type) use 5.0.2, rows with a test command or script of their own use 4.1.0, all others their family's grader.
 *
 * `recordExitCode` (default) adds to every script made by columns the two lines by which 5.0.2 records the exit code of the tests:
 * verdicts do not change, and `trust` can compare the exit code with the log. Without it the script is identical to the harness's.
 *
 * @throws SwefarmError `instance_invalid` that names the fields the row lacks, or what its plan asks for and is not known here
 */
export function planEvaluation(
  instance: Instance,
  choice: GraderChoice = 'auto',
  options: { recordExitCode?: boolean } = {},
): InstancePlan {
  if (instance.plan) return ownPlan(instance, instance.plan, choice);
  const grader = choice === 'auto' ? graderOf(instance) : choice;
  if (instance.family === 'swesmith')
    refuse(
      instance,
      'a row of SWE-smith is evaluated by a plan of its own, and has none: read the dataset again with this version',
    );
  if (instance.FAIL_TO_PASS.length + instance.PASS_TO_PASS.length === 0)
    refuse(instance, 'no FAIL_TO_PASS and no PASS_TO_PASS');
  const { parser, script } = scriptOf(instance, grader, options.recordExitCode ?? true);
  const dialect = DIALECT[grader];
  const known = parserName(parser, dialect);
  if (known === null) {
    const names = parserNames(dialect).join(', ');
    refuse(instance, `log_parser "${parser}" is unknown to ${grader} (known: ${names})`);
  }
  return {
    grader,
    before: [],
    ...APPLICATION[grader],
    unapplied: 'ends',
    after: [],
    script,
    files: [],
    outcomes: { from: 'log', dialect, parser: known },
    verdict: { rule: ruleOf(instance, grader) },
  };
}

/**
 * Whether a patch contains nothing to evaluate. Most harnesses treat blank text as no patch; a plan may say that it is applied as one.
 * Without a plan, the instance cannot be evaluated.
 */
export const isNoPatch = (patch: string, plan: Pick<InstancePlan, 'blank'> | null): boolean =>
  patch === '' || (patch.trim() === '' && plan?.blank !== 'applied');

/** Names of the log parser in reports; null where outcomes come from elsewhere. */
export const parserOf = ({ outcomes }: Pick<InstancePlan, 'outcomes'>): string | null =>
  outcomes.from === 'log' ? outcomes.parser : null;

function ownPlan(instance: Instance, plan: InstancePlan, choice: GraderChoice): InstancePlan {
  if (choice !== 'auto' && choice !== plan.grader && !plan.grader.startsWith(`${choice}-`))
    refuse(instance, `its row is graded as ${plan.grader}, and not by --grader ${choice}; leave that out`);
  const { outcomes, verdict } = plan;
  if (!isSourceRead(outcomes.from))
    refuse(instance, `plan.outcomes.from: this version does not read outcomes from "${outcomes.from}"`);
  if (!isRuleKnown(verdict.rule))
    refuse(instance, `plan.verdict.rule: this version does not know the rule "${verdict.rule}"`);
  if (outcomes.from === 'exit_code' && outcomes.pattern !== undefined && !readExitPattern(outcomes.pattern))
    refuse(
      instance,
      `plan.outcomes.pattern: expected plain text around one group of digits, as CODE=(\\d+), found ${JSON.stringify(outcomes.pattern.slice(0, 80))}`,
    );
  if (outcomes.from !== 'log') return plan;
  const { dialect } = outcomes;
  if (!isDialect(dialect)) refuse(instance, `plan.outcomes.dialect: "${dialect}" is not known`);
  const parser = parserName(outcomes.parser, dialect);
  if (parser === null)
    refuse(
      instance,
      `log parser "${outcomes.parser}" is unknown to ${plan.grader} (known: ${parserNames(dialect).join(', ')})`,
    );
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
  // 5.0.2 records the exit code itself.
  if (grader === 'swebench-5.0.2') return { parser, script: recordExitCode(latestScript(instance, spec)) };
  if (instance.eval_script !== undefined) return { parser, script: recorded(instance.eval_script) };
  if (grader === 'swegym') return { parser, script: forkScript(instance, spec, records) };
  return { parser, script: recorded(swebenchScript(instance, spec)) };
}
