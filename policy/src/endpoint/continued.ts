/** The answer after which a conversation continues. */
import type { Message } from '@swefarm/shared';
import type { ModelReply } from './reply.ts';

/** Immutable state that a client needs, in addition to the token ids, to continue after one answer. */
export type TurnPoint = {
  readonly message: Message;
  /** Number of messages before the answer. */
  readonly at: number;
  /** Number of the answer, from 1. */
  readonly answer: number;
  /** Whether the model ended the answer by itself, so that its last token ends the turn. */
  readonly ended: boolean;
  /** Number of tokens of the first prompt; null: unknown. */
  readonly firstPrompt: number | null;
};

/** The answer after which a client continues, with its ids; null if the endpoint returned none. */
export type Continued = Pick<
  ModelReply,
  'prompt_token_ids' | 'generation_token_ids' | 'generation_log_probs'
> & { point: TurnPoint };
