/** Opens turn clients. In modes `text` and `echo` the chat endpoint renders the messages and parses the answers. */
import type { PolicyConfig } from '@swefarm/shared';
import { ChatStream } from './endpoint/chatstream.ts';
import { encodeConversation } from './endpoint/conversation.ts';
import { isEventStream } from './endpoint/events.ts';
import { type ModelReply, parseReply } from './endpoint/reply.ts';
import { chatBody } from './endpoint/request.ts';
import { openRenderer } from './template/renderer.ts';
import { TokenTurnClient } from './tokenclient.ts';
import type { TurnClient } from './turnclient.ts';
import { createTurnSampling, sendWithinLimit, type TurnLimits, type TurnSampling } from './turnsampling.ts';

/** Opens the turn client for the token mode of `config`. Throws UsageError `tokenizer` if the tokenizer folder is invalid. */
export async function openTurnClient(config: PolicyConfig, limits: TurnLimits): Promise<TurnClient> {
  const sampling = createTurnSampling(config, limits);
  if (config.token_mode !== 'token-in') return createChatClient(config, sampling);
  return new TokenTurnClient(config, sampling, await openRenderer(config));
}

function createChatClient(initial: PolicyConfig, sampling: TurnSampling): TurnClient {
  let config = initial;
  // Only mode `echo` needs the ids of the last answer.
  let last: ModelReply | null = null;
  let stream: ChatStream | null = null;
  const encoded = encodeConversation();
  return {
    async ask(messages, tools, post) {
      const send = async (sampling: Parameters<typeof chatBody>[4]): Promise<ModelReply> => {
        stream = new ChatStream();
        const body = await post('chat', chatBody(config, messages, tools, last, sampling, encoded), stream);
        if (isEventStream(body)) stream.take(body);
        return body.length === 0 || isEventStream(body) ? stream.end() : parseReply(body);
      };
      const [reply, asked] = await sendWithinLimit(sampling.forChat(messages), send, null);
      const streamedTokens = uncountedTokens(stream, reply);
      // Token limits and speed need token counts. A server whose streams have no counts gets requests without streaming.
      if (streamedTokens !== undefined && config.stream === 'auto') config = { ...config, stream: 'off' };
      stream = null;
      // `routed_experts` is a view that would retain the bytes of the whole answer in memory.
      if (config.token_mode === 'echo') last = { ...reply, routed_experts: null };
      return { ...reply, asked, ...(streamedTokens === undefined ? {} : { streamedTokens }) };
    },
    storedTokens: () => 0,
    generatedTokens: () => stream?.tokens ?? 0,
    stopStreaming() {
      config = { ...config, stream: 'off' };
    },
  };
}

/** Returns the number of tokens counted in a stream; undefined if the answer reports a token count or was not streamed. */
function uncountedTokens(stream: ChatStream | null, reply: ModelReply): number | undefined {
  if (!stream?.finished || reply.usage !== null || reply.generation_token_ids !== null) return undefined;
  return stream.tokens;
}
