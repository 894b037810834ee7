export { buildToy, toyCard } from './agents/toy.ts';
export { buildExamples } from './examples/build.ts';
export { makeFamilyInstances } from './families/instances.ts';
export {
  type Breakage,
  compilerMissing,
  LANGUAGES,
  type Language,
  makeLanguageTree,
  markedScript,
} from './families/languages.ts';
export { smithMirror } from './families/smith.ts';
export { startFaultProxy } from './faultproxy.ts';
export { makeHarborBase } from './images/harborbase.ts';
export { importTree } from './images/import.ts';
export { minimalImage } from './images/minimal.ts';
export { type Push, pushImage } from './images/push.ts';
export { buildSif } from './images/sif.ts';
export { prepareSubject, type Subject } from './images/subject.ts';
export { makeCertificates } from './launchers/certificates.ts';
export { shiftedClock } from './launchers/clock.ts';
export { gatewayUrl, runCommand, type Started, startCommand, words } from './launchers/commands.ts';
export { noDistribution, startDistribution } from './launchers/distribution.ts';
export { ensureDocker } from './launchers/docker.ts';
export { type PodmanEngine, startPodman } from './launchers/podman.ts';
export { startRedis, type TestRedis } from './launchers/redis.ts';
export { type RedisFleet, startCluster, startSentinels } from './launchers/redisfleet.ts';
export { run } from './launchers/run.ts';
export { type SecuredRedis, startSecuredRedis } from './launchers/securedredis.ts';
export { readLines, writeLines } from './lines.ts';
export { createScheduler, EngineOptions, type EngineStats } from './policy/engine.ts';
export type { FaultRuleInput } from './policy/faults.ts';
export { generateScript } from './policy/generate.ts';
export { conversation, loadScript, running, type ScriptInput, type TurnInput } from './policy/script.ts';
export { type ScriptedPolicy, type ScriptedPolicyOptions, startScriptedPolicy } from './policy/server.ts';
export { loadTokenizer, type Tokenizer } from './policy/tokenizer.ts';
export { startRegistry } from './registry.ts';
export { type RegistryProxy, startRegistryProxy } from './registryproxy.ts';
export { commitTree, writeTree } from './repository.ts';
export {
  bareArtifact,
  bareFacts,
  bareInstance,
  bareReport,
  bareResult,
  bareRun,
  bareTrajectory,
  bareTurn,
  printingScript,
} from './results/bare.ts';
export { type MadeRun, type MadeRunOptions, makeRun } from './results/made.ts';
export { oddJson, oddTree } from './results/odd.ts';
export { plantResult, rawRedis } from './results/raw.ts';
export { madeLiveTurn, madeTrajectory } from './results/trajectory.ts';
export { asyncCollector, type Post, singleController, weightOf } from './trainers/nemorl.ts';
export { until } from './until.ts';
