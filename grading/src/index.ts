export { isDialect, parserName } from './dialects/registry.ts';
export { recordExitCode, swebenchScript } from './plan/evalscript.ts';
export type { GraderChoice } from './plan/graders.ts';
export { isNoPatch, planEvaluation, untouchedPatch } from './plan/plan.ts';
export { smithCommand, smithScript } from './plan/smith/command.ts';
export { type TestFiles, testFilesOf } from './plan/smith/files.ts';
export { type SmithProject, smithProject, smithProjects } from './plan/smith/projects.ts';
export { knownRepos, knownVersions } from './plan/specs.ts';
export { liveProgram, multiSweProgram, proProgram } from './programs/programs.ts';
export { type EvaluationFacts, gradeEvaluation, unreadReport } from './report/grade.ts';
export { guessInfra } from './report/infra.ts';
export { isSmith, officialReport, type RunEntry, runReport, smithRunReport } from './report/official.ts';
export { weightWarnings } from './reward/parts.ts';
export {
  checkOverrides,
  decideReward,
  needsEvaluation,
  type RewardDecision,
  type RewardOverrides,
  withReport,
} from './reward/reward.ts';
export { REWARD_TABLE } from './reward/table.ts';
export { isNew, pathOf, readDiff } from './text/diff.ts';
export { decidesOutcomes } from './trust/changedtools.ts';
export { hasOutcomes, hidesFailures, makeTestsFail, showsFailures } from './trust/failingtests.ts';
export { isPathFile } from './trust/pathfiles.ts';
export { type Signs, signsOf } from './trust/signs.ts';
export { withoutTestHooks } from './trust/withouthooks.ts';
export type { ProgramEnd } from './verdict/evidence.ts';
