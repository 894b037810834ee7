/** Opens turn clients. In modes `text` and `echo` the chat endpoint renders the messages and parses the answers. */
import type { PolicyConfig } from '@swefarm/shared';
import { ChatStream } from './endpoint/chatstream.ts';
import type { Continued } from './endpoint/continued.ts';
import { encodeConversation } from './endpoint/conversation.ts';
import { isEventStream } from './endpoint/events.ts';
import { type ModelReply, parseReply } from './endpoint/reply.ts';
import { chatBody } from './endpoint/request.ts';
import { openRenderer } from './template/renderer.ts';
import { createTokenTurns, TokenTurnClient } from './tokenclient.ts';
import type { TurnClient, TurnClients } from './turnclient.ts';
import { createTurnSampling, sendWithinLimit, type TurnLimits, type TurnSampling } from './turnsampling.ts';

/** Opens the clients of a rollout for the token mode of `config`. Throws UsageError `tokenizer` if the tokenizer folder is invalid. */
export async function openTurnClients(config: PolicyConfig, limits: TurnLimits): Promise<TurnClients> {
  const sampling = createTurnSampling(config, limits);
  const { model = () => config.model } = limits;
  if (config.token_mode !== 'token-in') {
    return { open: (after) => createChatClient(config, sampling, model, after), countTokens: null };
  }
  const turns = createTokenTurns(config, sampling, await openRenderer(config, model), model);
  return {
    open: (after) => new TokenTurnClient(turns, after),
    countTokens: async (messages, tools, post) => (await turns.render(messages, tools, post)).length,
  };
}

/** Opens the client of a rollout with one conversation. Throws UsageError `tokenizer` if the tokenizer folder is invalid. */
export const openTurnClient = async (config: PolicyConfig, limits: TurnLimits): Promise<TurnClient> =>
  (await openTurnClients(config, limits)).open();

function createChatClient(
  initial: PolicyConfig,
  sampling: TurnSampling,
  model: () => string,
  after?: Continued,
): TurnClient {
  let config = initial;
  let answers = after?.point.answer ?? 0;
  // Only mode `echo` needs the ids of the last answer.
  let last = after ? lastOf(after) : null;
  let stream: ChatStream | null = null;
  const encoded = encodeConversation();
  return {
    async ask(messages, tools, post, { answer = answers + 1, maxTokens = null } = {}) {
      const send = async (sampling: Parameters<typeof chatBody>[4]): Promise<ModelReply> => {
        stream = new ChatStream();
        const asked = { ...config, model: model() };
        const body = await post('chat', chatBody(asked, messages, tools, last, sampling, encoded), stream);
        if (isEventStream(body)) stream.take(body);
        return body.length === 0 || isEventStream(body) ? stream.end() : parseReply(body);
      };
      const [reply, asked] = await sendWithinLimit(sampling.forChat({ answer, maxTokens }), send, null);
      answers = answer;
      const streamedTokens = uncountedTokens(stream, reply);
      // Token limits and speed need token counts. A server whose streams have no counts gets requests without streaming.
      if (streamedTokens !== undefined && config.stream === 'auto') config = { ...config, stream: 'off' };
      stream = null;
      const ended = reply.finish_reason !== 'length';
      const point = { message: reply.message, at: messages.length, answer, ended, firstPrompt: null };
      if (config.token_mode === 'echo') last = lastOf({ ...reply, point });
      return { ...reply, asked, after: point, ...(streamedTokens === undefined ? {} : { streamedTokens }) };
    },
    storedTokens: () => 0,
    generatedTokens: () => stream?.tokens ?? 0,
    stopStreaming() {
      config = { ...config, stream: 'off' };
    },
  };
}

/** Returns the answer without `routed_experts`, a view that would retain the bytes of the whole answer in memory. */
function lastOf({
  point,
  prompt_token_ids,
  generation_token_ids,
  generation_log_probs,
}: Continued): Continued {
  return { point, prompt_token_ids, generation_token_ids, generation_log_probs };
}

/** Returns the number of tokens counted in a stream; undefined if the answer reports a token count or was not streamed. */
function uncountedTokens(stream: ChatStream | null, reply: ModelReply): number | undefined {
  if (!stream?.finished || reply.usage !== null || reply.generation_token_ids !== null) return undefined;
  return stream.tokens;
}
