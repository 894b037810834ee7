export { agentSettings } from './agentsettings.ts';
export { branchRun } from './branch.ts';
export { withDeadline } from './deadline.ts';
export { PassEstimate, passEstimate } from './draws/estimate.ts';
export { flagKey, flagName, RUN_FLAGS, type RunFlag, type RunFlagValues, readFlag } from './flags.ts';
export { forecastRun, inOrder, leadOf, requireForecast } from './forecast.ts';
export { type EvaluationRound, healthFinding, withEgress } from './health/finding.ts';
export {
  addKnownHealth,
  appendFindings,
  type HealthFinding,
  type HealthRegistry,
  readRegistry,
  registryPath,
} from './health/registry.ts';
export { notesOnMini } from './miniconfig.ts';
export { readPatches } from './patches.ts';
export { withShownPictures } from './pictures.ts';
export { ANY_MODEL, diagnose } from './probe/doctor.ts';
export { probeEndpoints } from './probe/endpoints.ts';
export { probePictures, probeReachable } from './probe/probe.ts';
export {
  merge,
  newRunRecord,
  recordFromSettings,
  requireCountableCost,
  requireKnownKeys,
  requireSameSettings,
  runSettings,
} from './record.ts';
export { runSchema } from './runschema.ts';
export { createNormal, idealMakespan, makespan } from './schedule.ts';
export { withSets } from './sets.ts';
export { asTree, type SettingsTree } from './settingstree.ts';
export {
  queueMore,
  rolloutIds,
  type Submission,
  type Submitted,
  staleLimitWarning,
  submit,
} from './submit.ts';
export { localAbility, workerWarnings } from './workerneeds.ts';
