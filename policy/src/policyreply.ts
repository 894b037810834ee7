/** Defines the reply of a policy to a client that retries, and converts the reply to a turn. */
import type { Turn } from '@swefarm/shared';
import type { ModelReply } from './endpoint/reply.ts';

/**
 * The reply of a policy. `seconds` is the duration without pauses of the policy. `endpoint` is the endpoint that sent the last part of the
 * answer. `spans` is absent if the endpoint sent no token ids.
 */
export type PolicyReply = ModelReply & { seconds: number; endpoint: string } & Pick<
    Turn,
    'policy_version' | 'asked' | 'spans'
  >;

/** Converts a reply to a turn without tokens and commands. @param message index of the reply's message in the trajectory */
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
