export { contentWithoutThought, findUnreadCall } from './content.ts';
export { createEndpointClient, type EndpointClient } from './endpoint/client.ts';
export type { Continued, TurnPoint } from './endpoint/continued.ts';
export { AnswerError, APIError, ContextOverflowError, PromptTooLongError } from './endpoint/errors.ts';
export { preparePolicyConnections } from './endpoint/exchange.ts';
export { type ServedModel, servedModelIn, UNKNOWN_MODEL } from './endpoint/models.ts';
export {
  dataUrl,
  PICTURES_REMEDY,
  picturesOf,
  refusesPictures,
  type WireMessage,
  wireMessage,
  withNamedPictures,
} from './endpoint/parts.ts';
export type { BodyPiece, Post, Route } from './endpoint/post.ts';
export { parseOverflow, refusedSamplingKey, samplingKeyRemedy } from './endpoint/refusal.ts';
export type { ModelReply } from './endpoint/reply.ts';
export { chatBody, completionBody } from './endpoint/request.ts';
export { type AnswerSink, wantsStream } from './endpoint/stream.ts';
export { parseUsage } from './endpoint/usage.ts';
export { findFencedBlock } from './fencedblock.ts';
export { openTurnClient, openTurnClients } from './openturnclient.ts';
export { type PolicyReply, turnOf } from './policyreply.ts';
export { type RecordedReply, recordedReplies } from './recordedreplies.ts';
export { type JinjaTemplate, parseJinja } from './template/jinja.ts';
export { openRenderer } from './template/renderer.ts';
export { type ExpertMode, expertModeOf } from './tokens/expertrows.ts';
export { ID_BYTES } from './tokens/experts.ts';
export { GrowableText } from './tokens/growable.ts';
export {
  cumulative,
  openLedger,
  type ReplyTokens,
  recordTokens,
  TokenBreak,
  type TokenLedger,
} from './tokens/ledger.ts';
export type { BegunReply, TurnClient, TurnClients, TurnReply } from './turnclient.ts';
export { NO_LIMITS, type TokenLimits } from './turnsampling.ts';
