export { readDiff } from './diff.ts';
export * from './grade.ts';
export type * from './grading.ts';
export { guessInfra, type InfraGuess } from './infra.ts';
export { withoutMeans } from './means.ts';
export {
  type OfficialContext,
  officialReport,
  type RunEntry,
  runReport,
  smithRunReport,
} from './official.ts';
export type { Dialect } from './parsers/reader.ts';
export { parserName, parserNames, readLog } from './parsers/registry.ts';
export { isPathFile } from './pathfiles.ts';
export { isNoPatch, planEvaluation } from './plan.ts';
export * from './reward.ts';
export { knownRepos } from './specs.ts';
export * from './table.ts';
export { decides } from './tools.ts';
export { type Trap, withTrap } from './trap.ts';
export { assessTrust } from './trust.ts';
