export { isArtifactFile, isArtifactGone, readArtifactFile } from './artifacts/artifacts.ts';
export * from './artifacts/codec.ts';
export type * from './artifacts/store.ts';
export * from './config/ceilings.ts';
export * from './config/environment.ts';
export * from './config/load.ts';
export * from './config/nearest.ts';
export * from './config/runtimes.ts';
export { parseBytes } from './config/schema.ts';
export { parseYaml } from './config/yaml.ts';
export * from './failures/errors.ts';
export * from './failures/failure.ts';
export * from './files/folder.ts';
export { jsonText } from './files/jsontext.ts';
export * from './files/replace.ts';
export * from './metrics/definition.ts';
export * from './metrics/live.ts';
export * from './metrics/outcomes.ts';
export * from './metrics/text.ts';
export * from './metrics/totals.ts';
export * from './metrics/vitals.ts';
export * from './metrics/worker.ts';
export { parseAnswer } from './policy/answer.ts';
export { contentWithoutThought, findUnreadCall } from './policy/content.ts';
export { createEndpointClient, type EndpointClient } from './policy/endpoint/client.ts';
export { AnswerError, APIError, ContextOverflowError, PromptTooLongError } from './policy/endpoint/errors.ts';
export { closePolicyConnections, preparePolicyConnections } from './policy/endpoint/exchange.ts';
export {
  type ListedModel,
  type ServedModel,
  servedModelIn,
  UNKNOWN_MODEL,
} from './policy/endpoint/models.ts';
export {
  dataUrl,
  PICTURES_REMEDY,
  picturesOf,
  refusesPictures,
  type WireMessage,
  wireMessage,
  withNamedPictures,
} from './policy/endpoint/parts.ts';
export { type BodyPiece, type Post, type Route, routeUrl } from './policy/endpoint/post.ts';
export { parseOverflow, refusedSamplingKey, samplingKeyRemedy } from './policy/endpoint/refusal.ts';
export type { ModelReply } from './policy/endpoint/reply.ts';
export { chatBody, completionBody } from './policy/endpoint/request.ts';
export { type AnswerSink, wantsStream } from './policy/endpoint/stream.ts';
export { parseUsage } from './policy/endpoint/usage.ts';
export { findFencedBlock } from './policy/fencedblock.ts';
export { openTurnClient } from './policy/openturnclient.ts';
export { NO_LIMITS, type TokenLimits } from './policy/sequencelimit.ts';
export { openRenderer } from './policy/template/renderer.ts';
export { type ExpertMode, expertModeOf } from './policy/tokens/expertrows.ts';
export { ID_BYTES } from './policy/tokens/experts.ts';
export * from './policy/tokens/ledger.ts';
export type { TurnClient, TurnReply } from './policy/turnclient.ts';
export * from './processes/diewithparent.ts';
export * from './processes/doctor.ts';
export * from './processes/escaped.ts';
export * from './processes/identity.ts';
export { lastingCommand } from './processes/lasting.ts';
export * from './processes/log.ts';
export * from './processes/reachablehost.ts';
export { softwareVersion } from './processes/version.ts';
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
export * from './records/bounds.ts';
export * from './records/environment.ts';
export * from './records/ids.ts';
export * from './records/instance.ts';
export * from './records/job.ts';
export * from './records/needs.ts';
export * from './records/parse.ts';
export * from './records/picture.ts';
export * from './records/plan.ts';
export * from './records/policy.ts';
export * from './records/price.ts';
export { type ProgramSource, parseProgramOutput } from './records/programoutput.ts';
export * from './records/report.ts';
export * from './records/result.ts';
export * from './records/runconfig.ts';
export * from './records/sampling.ts';
export * from './records/session.ts';
export { RUN_SETTINGS, type RunSetting } from './records/setting.ts';
export * from './records/success.ts';
export { TOOL_PARSERS } from './records/toolparsers.ts';
export * from './records/trajectory.ts';
export { type Access, type AclRole, aclRules, aclUser, KEY_FAMILIES, type KeyFamily } from './redis/acl.ts';
export { readAddress, removeAddress, writeAddress } from './redis/address.ts';
export * from './redis/budget.ts';
export type { CallClaim, CallOpening, CallRequest, Calls } from './redis/calls.ts';
export type { Cancel } from './redis/cancel.ts';
export type { Clock } from './redis/clock.ts';
export type { Commit, CommitReply } from './redis/commit.ts';
export type { Controls, ControlTree, KnownControls } from './redis/controls.ts';
export { newestCopy, restoreCopy, saveCopy } from './redis/copy.ts';
export * from './redis/farm.ts';
export type { Groups, RunPause } from './redis/groups.ts';
export type { Jobs } from './redis/jobs.ts';
export {
  AttemptClass,
  AttemptEnd,
  type Claim,
  type Journal,
  JournalEntry,
  type RunningAttempt,
} from './redis/journal.ts';
export { freePort, type LaunchedRedis, type LaunchOptions, launchRedis } from './redis/launch.ts';
export type { Leases } from './redis/lease.ts';
export { type Live, LiveRollout, LiveTurn, type LiveTurns } from './redis/live.ts';
export type { Nodes } from './redis/nodes.ts';
export * from './redis/orphans.ts';
export { refusedByRedis } from './redis/outage.ts';
export type { Handed, Placement } from './redis/placement.ts';
export type { Policies } from './redis/policies.ts';
export { EndpointProbe, type Probes } from './redis/probes.ts';
export * from './redis/queue.ts';
export type { Quotas } from './redis/quotas.ts';
export { describeUnreadableRun, isDamagedInstance, isNotOurs, type UnreadableRun } from './redis/record.ts';
export { type Registry, WorkerRecord } from './redis/registry.ts';
export {
  describeUnreadable,
  type GroupCount,
  type ResultBatch,
  type Results,
  type RunCounts,
  type UnreadableResult,
} from './redis/results.ts';
export { resumeRun } from './redis/resume.ts';
export type { Runs } from './redis/runs.ts';
export type { Secrets } from './redis/secrets.ts';
export { fetchedServer } from './redis/server.ts';
export type { DriverReply, PostedCommand, Sessions } from './redis/sessions.ts';
export * from './security/policykey.ts';
export * from './security/secret.ts';
export * from './waiting/abort.ts';
export * from './waiting/poll.ts';
export * from './waiting/retry.ts';
export * from './waiting/semaphore.ts';
export * from './waiting/singleflight.ts';
export * from './waiting/sleep.ts';
