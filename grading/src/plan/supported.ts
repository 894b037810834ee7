/** What of a plan this version can carry out. Whoever adds a source or a rule enters it here; the types then ask for its function. */
import type { InstancePlan } from '@swefarm/shared';

/** Places from which outcomes are read, each by one function of `verdict/outcomes.ts`. */
const SOURCES = [
  'log',
  'exit_code',
  'junit',
  'program',
  'reward',
] as const satisfies readonly InstancePlan['outcomes']['from'][];
/** Rules by which there is a verdict, each one function of `verdict/rules.ts`. */
const RULES = [
  'swebench',
  'swebench-5',
  'fail_only',
  'subset',
  'equal',
  'live',
  'expected',
  'classes',
  'junit_ids',
  'exit_code',
  'reward',
] as const satisfies readonly InstancePlan['verdict']['rule'][];

export type SourceName = (typeof SOURCES)[number];
export type RuleName = (typeof RULES)[number];

const isOneOf = (names: readonly string[], name: string): boolean => names.includes(name);

export const isSourceRead = (from: InstancePlan['outcomes']['from']): from is SourceName =>
  isOneOf(SOURCES, from);
export const isRuleKnown = (rule: InstancePlan['verdict']['rule']): rule is RuleName => isOneOf(RULES, rule);
