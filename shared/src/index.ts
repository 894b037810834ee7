export { isArtifactFile, isArtifactGone, readArtifactFile } from './artifacts/artifacts.ts';
export {
  type AgentOutput,
  type ArtifactContent,
  type CollectedArtifact,
  decodeArtifact,
  encodeArtifact,
} from './artifacts/codec.ts';
export type { ArtifactStore, StoredArtifact } from './artifacts/store.ts';
export {
  type BegunAnswer,
  decodeTurns,
  encodeTurns,
  hashOfMessages,
  lineOfBegun,
  parseTurns,
  type RecordedTurn,
  recordedTurn,
  recordedTurns,
  seenBefore,
  type TurnRecord,
  textOfTurns,
} from './artifacts/turnrecord.ts';
export {
  beyondCeiling,
  type Ceilings,
  describeExcess,
  type Excess,
  instanceBeyondCeiling,
} from './config/ceilings.ts';
export {
  childEnvironment,
  environmentSecret,
  environmentValues,
  inheritedEnvironment,
} from './config/environment.ts';
export { configSchema, fileSchema, type JsonSchema } from './config/jsonschema.ts';
export {
  configOptions,
  describeConfig,
  loadConfig,
  type ProducerConfig,
  type WorkerConfig,
} from './config/load.ts';
export { nearest } from './config/nearest.ts';
export { RUNTIME_NAMES, RUNTIMES, type RuntimeName } from './config/runtimes.ts';
export { parseBytes } from './config/schema.ts';
export { parseYaml, parseYamlLines, readYaml } from './config/yaml.ts';
export { errorMessage, SwefarmError, UnusableError, UsageError, withoutMiddle } from './failures/errors.ts';
export {
  FAILURE_CLASSES,
  FAILURES,
  Failure,
  type FailureClass,
  FailureStage,
  RolloutFailure,
} from './failures/failure.ts';
export { isOurs, isTrusted, type OwnFolder, ownFolder } from './files/folder.ts';
export { jsonText } from './files/jsontext.ts';
export { replaceFile, replaceWith } from './files/replace.ts';
export type { Definitions, LabelOf, MetricDefinition } from './metrics/definition.ts';
export { LIVE_METRICS } from './metrics/live.ts';
export { OUTCOME_METRICS } from './metrics/outcomes.ts';
export { type Family, family, renderFamilies } from './metrics/text.ts';
export { outcomeFamilies, versionFamilies } from './metrics/totals.ts';
export { vitalFamilies } from './metrics/vitals.ts';
export { WORKER_METRICS } from './metrics/worker.ts';
export { shellExports, shellQuoted } from './processes/bash.ts';
export { dieWithParent } from './processes/diewithparent.ts';
export { type Finding, renderFinding } from './processes/doctor.ts';
export { catchEscaped, escapedErrors, escapedExit, logEscaped, onEscaped } from './processes/escaped.ts';
export {
  bootId,
  isProcessAlive,
  ownStartMark,
  processStarted,
  readProcessStat,
} from './processes/identity.ts';
export { lastingCommand } from './processes/lasting.ts';
export { createLog, type Log, silentLog } from './processes/log.ts';
export { hostPort, reachableHost } from './processes/reachablehost.ts';
export { softwareVersion } from './processes/version.ts';
export { AgentConfig } from './records/agentconfig.ts';
export {
  AGENTS,
  type AgentName,
  agentsWith,
  asksPolicy,
  DEFAULT_AGENT,
  type GivenAgent,
  isSandboxAgent,
  type SandboxAgent,
} from './records/agents.ts';
export { MOST } from './records/bounds.ts';
export { BUILD_OUTPUTS } from './records/buildoutputs.ts';
export { AgentCard, Dialect } from './records/card.ts';
export { applies, secondsOf } from './records/chance.ts';
export {
  type Delay,
  DryRun,
  DryRunScript,
  type HttpFault,
  type RolloutFault,
  StoredRollout,
} from './records/dryrun.ts';
export { InstanceEnvironment, SetupStep, Step } from './records/environment.ts';
export { RunForecast } from './records/forecast.ts';
export {
  BUILT_IMAGES,
  type HarborArtifact,
  HarborTask,
  isArtifactDestination,
  MOST_ARTIFACTS,
} from './records/harbor.ts';
export { type AttemptName, idOf, newId, parseRolloutId, rolloutId } from './records/ids.ts';
export { brokenBecause, DatasetFamily, Instance, InstanceHealth } from './records/instance.ts';
export { RolloutJob, RunRecord, startedGroup, startedRollouts } from './records/job.ts';
export {
  allAnswers,
  allTurns,
  lastMainTurn,
  linesOf,
  mainLineId,
  ownTurns,
  sampledTurns,
  type WholeLine,
} from './records/lines.ts';
export { BRANCHES, DRY_RUNS, HARBOR_TASKS, needsOf, POLICY_HEADERS, UNDERSTOOD } from './records/needs.ts';
export { problemOf, type Read, tryParseJson } from './records/parse.ts';
export {
  describePicture,
  PICTURE_TYPES,
  Picture,
  PictureFile,
  picturesRefusedBy,
  pictureTypeOf,
} from './records/picture.ts';
export { ApplyAttempt, InstancePlan, OutcomeSource } from './records/plan.ts';
export {
  DEFAULT_POLICY,
  EndpointUrl,
  EndpointView,
  followsPolicy,
  modelOfRun,
  PolicyChange,
  PolicyName,
  PolicyRecord,
  PolicyState,
  versionsBehind,
  withoutSlash,
} from './records/policy.ts';
export { costOf, Price } from './records/price.ts';
export { type ProgramSource, parseProgramOutput } from './records/programoutput.ts';
export {
  jinjaValuesOf,
  parseTemplate,
  renderTemplate,
  SENTINEL,
  TEMPLATE_NAMES,
  TEMPLATE_VALUES,
  type TemplateName,
  type TemplateValues,
  valuesOf,
} from './records/prompttemplates.ts';
export { Report, RewardComponents, Score } from './records/report.ts';
export {
  CancelReason,
  DryRunMark,
  InstalledAgent,
  isTruncated,
  NO_SECONDS,
  Outcome,
  Replay,
  Result,
  RewardFacts,
  Seconds,
  UnreadCalls,
} from './records/result.ts';
export {
  type PartWeight,
  parseWeights,
  REWARD_PARTS,
  REWARD_WEIGHTS_LEVEL,
  type RewardPart,
  RewardParts,
  RewardWeights,
} from './records/rewardparts.ts';
export {
  EvaluationConfig,
  PolicyConfig,
  policyOfRollout,
  RewardChoice,
  RolloutPolicy,
  SandboxConfig,
} from './records/runconfig.ts';
export {
  effectiveSampling,
  NEUTRAL,
  otherFields,
  reshapingKeys,
  SAMPLING_KEYS,
  Sampling,
  type SamplingKey,
  turnSeed,
} from './records/sampling.ts';
export {
  AnswerContent,
  InputError,
  SandboxPath,
  SESSION_FILE_BYTES,
  SESSION_INPUTS_LEVEL,
  SESSION_OUTPUT_BYTES,
  SessionAnswer,
  SessionClock,
  SessionEnd,
  SessionInput,
  SessionInputs,
  SessionState,
} from './records/session.ts';
export { RUN_SETTINGS, type RunSetting } from './records/setting.ts';
export { successOf } from './records/success.ts';
export { TOOL_PARSERS, type ToolParser } from './records/toolparsers.ts';
export { PromptSet, SetName, SUBMIT_NAMES, Tool, Toolset, Variant } from './records/toolset.ts';
export {
  BranchPoint,
  CommandRecord,
  ExitStatus,
  type ExpertType,
  type Line,
  LineKind,
  Message,
  type RequestedSampling,
  type Span,
  type TokenLimit,
  type ToolDefinition,
  type Trajectory,
  type Turn,
  type TurnExperts,
  type TurnRequest,
  type TurnTokens,
} from './records/trajectory.ts';
export { shuffledBy, uniformOf } from './records/uniform.ts';
export { Curriculum, Draw, mostGroups, Stratum, startedGroups, Until } from './records/until.ts';
export { aclUser } from './redis/acl.ts';
export { removeAddress, writeAddress } from './redis/address.ts';
export {
  ADMISSION_WAIT_MS,
  type AdmissionPool,
  AdmissionState,
  EndpointLoad,
  fixedPool,
  Permission,
} from './redis/admission.ts';
export { decide } from './redis/budget.ts';
export { type CallRequest, cancelOrphans } from './redis/calls.ts';
export type { Clock } from './redis/clock.ts';
export { type Controls, ControlTree, type KnownControls } from './redis/controls.ts';
export { newestCopy, restoreCopy, saveCopy } from './redis/copy.ts';
export { type Farm, type OpenOptions, openFarm, prepareFarm } from './redis/farm.ts';
export { type EndedGroup, GroupChoice, GroupEnd } from './redis/groupends.ts';
export { RunPause, resumeRun } from './redis/groups.ts';
export type { KnownHistory, RolloutHistory } from './redis/history.ts';
export { AttemptEnd, type Claim, JournalEntry, type RunningAttempt } from './redis/journal.ts';
export { freePort, type LaunchedRedis, type LaunchOptions, launchRedis } from './redis/launch.ts';
export type { Leases } from './redis/lease.ts';
export { type Live, LiveRollout, LiveTurn } from './redis/live.ts';
export { refusedByRedis } from './redis/outage.ts';
export type { Passes } from './redis/passes.ts';
export type { Handed } from './redis/placement.ts';
export type { Policies } from './redis/policies.ts';
export { EndpointProbe } from './redis/probes.ts';
export { QUEUES, queueSettings, rankOf } from './redis/queue.ts';
export { describeUnreadableRun, isDamagedInstance, isNotOurs, UnreadableRun } from './redis/record.ts';
export { WorkerRecord } from './redis/registry.ts';
export {
  describeUnreadable,
  GroupCount,
  type ResultBatch,
  RunCounts,
  UnreadableResult,
} from './redis/results.ts';
export type { ClockReply, DriverReply, PostedCommand } from './redis/sessions.ts';
export { authorizationAt, keyAt, originOf, originsOf, type PolicyKey } from './security/policykey.ts';
export { Secret } from './security/secret.ts';
export { type Ending, onAbort, untilAborted, waitAtMost, whenAborted } from './waiting/abort.ts';
export { poll } from './waiting/poll.ts';
export { exponentialBackoff, linearBackoff, retry, startPatience } from './waiting/retry.ts';
export { createSemaphore, type Semaphore } from './waiting/semaphore.ts';
export { createLazy, createSingleFlight, type Lazy, type SingleFlight } from './waiting/singleflight.ts';
export { sleep, sleepAtMost } from './waiting/sleep.ts';
