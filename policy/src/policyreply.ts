/** The reply of a policy as a caller with retries knows it, and its turn. */
import type { Turn } from '@swefarm/shared';
import type { ModelReply } from './endpoint/reply.ts';

/**
 * `seconds`: duration without the seconds in which the policy was paused. `endpoint`: the sender of the last part. `spans` is absent when the
 * endpoint sent no token ids.
 */
export type PolicyReply = ModelReply & { seconds: number; endpoint: string } & Pick<
    Turn,
    'policy_version' | 'asked' | 'spans'
  >;

/** Returns the turn of a reply, without tokens and commands. @param message index of the reply's message in the trajectory */
export const turnOf = (reply: PolicyReply, message: number): Turn => ({
  message,
  finish_reason: reply.finish_reason,
  model_seconds: reply.seconds,
  usage: reply.usage,
  policy_version: reply.policy_version,
  ...(reply.asked && Object.keys(reply.asked).length > 0 ? { asked: reply.asked } : {}),
  endpoint: reply.endpoint,
  ...(reply.spans ? { spans: reply.spans } : {}),
  tokens: null,
  commands: [],
});
