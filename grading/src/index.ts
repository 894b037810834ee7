export { isDialect, parserName, parserNames, readLog } from './dialects/registry.ts';
export type { Dialect } from './parsers/reader.ts';
export { recordExitCode, swebenchScript } from './plan/evalscript.ts';
export type { GraderChoice, GraderName } from './plan/graders.ts';
export { isNoPatch, parserOf, planEvaluation } from './plan/plan.ts';
export { smithCommand, smithScript } from './plan/smith/command.ts';
export { type TestFiles, testFilesOf } from './plan/smith/files.ts';
export { type SmithProject, smithProject, smithProjects } from './plan/smith/projects.ts';
export { knownRepos, knownVersions } from './plan/specs.ts';
export { untouchedPatch } from './plan/untouched.ts';
export {
  liveProgram,
  type MultiSweTask,
  multiSweProgram,
  proProgram,
} from './programs/programs.ts';
export * from './report/grade.ts';
export { guessInfra, type InfraGuess } from './report/infra.ts';
export {
  isSmith,
  type OfficialContext,
  officialReport,
  type RunEntry,
  runReport,
  smithRunReport,
} from './report/official.ts';
export { withReport } from './reward/reported.ts';
export * from './reward/reward.ts';
export * from './reward/table.ts';
export { isNew, pathOf, readDiff } from './text/diff.ts';
export { decidesOutcomes } from './trust/changedtools.ts';
export {
  type FailingTests,
  hasOutcomes,
  hidesFailures,
  makeTestsFail,
  showsFailures,
} from './trust/failingtests.ts';
export { isPathFile } from './trust/pathfiles.ts';
export { type Signs, signsOf } from './trust/signs.ts';
export { assessTrust } from './trust/trust.ts';
export { withoutTestHooks } from './trust/withouthooks.ts';
export type { ProgramEnd } from './verdict/evidence.ts';
