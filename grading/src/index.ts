export { readDiff } from './diff.ts';
export * from './grade.ts';
export type * from './grading.ts';
export { guessInfra, type InfraGuess } from './infra.ts';
export {
  type OfficialContext,
  officialReport,
  type RunEntry,
  runReport,
  smithRunReport,
} from './official.ts';
export type { Dialect } from './parsers/reader.ts';
export { parserName, parserNames, readLog } from './parsers/registry.ts';
export { isNoPatch, planEvaluation } from './plan.ts';
export * from './reward.ts';
export { knownRepos } from './specs.ts';
export * from './table.ts';
export { type CanaryTest, withTrap } from './trust/canarytest.ts';
export { decides } from './trust/changedtools.ts';
export { isPathFile } from './trust/pathfiles.ts';
export { assessTrust } from './trust/trust.ts';
export { withoutMeans } from './trust/withouthooks.ts';
