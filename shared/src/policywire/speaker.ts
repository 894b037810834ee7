/** One rollout's side of the talk with a policy, in one of three token modes; transport and retries are the user's. */
import type { PolicyConfig } from '../job.ts';
import type { Message } from '../trajectory.ts';
import { readAnswer } from './answer.ts';
import { readCompletion } from './completion.ts';
import { type Incrementer, openIncrementer } from './increment.ts';
import type { Post } from './post.ts';
import { type Renderer, serverRenderer } from './renderer.ts';
import { readReply, type WireReply } from './reply.ts';
import { completionBody, requestBody } from './request.ts';

export type Speaker = {
  /**
   * Asks once. A call that throws leaves the speaker as it was, so that the same messages may be asked again.
   * `messages` only grow from call to call, and hold the message of each reply as it was given.
   */
  ask(messages: readonly Message[], tools: readonly object[], post: Post): Promise<WireReply>;
};

/** Throws UsageError `tokenizer` when the configuration names a folder that is none. */
export async function openSpeaker(config: PolicyConfig): Promise<Speaker> {
  if (config.token_mode !== 'token-in') return chatSpeaker(config);
  const { chat_template_kwargs: kwargs, chat_template: chat } = config.extra_body;
  const template = {
    ...(kwargs === undefined ? {} : { chat_template_kwargs: kwargs }),
    ...(chat === undefined ? {} : { chat_template: chat }),
  };
  if (config.tokenizer === null) return tokenSpeaker(config, serverRenderer(config.model, template));
  const { folderRenderer } = await import('./tokenizer.ts');
  return tokenSpeaker(config, await folderRenderer(config.tokenizer, template));
}

function chatSpeaker(config: PolicyConfig): Speaker {
  // Only mode `echo` needs the last answer's ids; the trajectory stores them in its own way.
  let last: WireReply | null = null;
  return {
    async ask(messages, tools, post) {
      const reply = readReply(await post('chat', requestBody(config, messages, tools, last)));
      // Not its experts: those are the whole answer's bytes.
      if (config.token_mode === 'echo') last = { ...reply, routed_experts: null };
      return reply;
    },
  };
}

type Said = { ids: Int32Array; message: Message; turn: number };

/** All ids so far and what is new go to the completions endpoint: contiguous by construction. */
export function tokenSpeaker(config: PolicyConfig, renderer: Renderer): Speaker {
  let said: Said | null = null;
  let incrementer: Incrementer | null = null;
  /** Rendered once a turn, however often the turn is asked. */
  let prepared: { at: number; prompt: Int32Array } | null = null;

  const promptFor = async (
    messages: readonly Message[],
    tools: readonly object[],
    post: Post,
  ): Promise<Int32Array> => {
    if (prepared?.at === messages.length) return prepared.prompt;
    let prompt: Int32Array;
    if (said === null) prompt = await renderer.render(messages, tools, post);
    else {
      incrementer ??= openIncrementer(renderer, tools);
      const news = messages.slice(messages.lastIndexOf(said.message) + 1);
      const increment = await incrementer.after(said.ids.at(-1), news, post);
      prompt = joined(said.ids, increment);
    }
    prepared = { at: messages.length, prompt };
    return prompt;
  };

  return {
    async ask(messages, tools, post) {
      const sent = await promptFor(messages, tools, post);
      const { text, ...read } = readCompletion(await post('completions', completionBody(config, sent)));
      const turn = (said?.turn ?? 0) + 1;
      const message = readAnswer(text, tools.length > 0, (place) => `call_${turn}_${place}`);
      // A server that says nothing of the prompt was still asked exactly this.
      const prompt = read.prompt_token_ids ?? sent;
      said = { ids: joined(prompt, read.generation_token_ids), message, turn };
      prepared = null;
      return { ...read, message, prompt_token_ids: prompt };
    },
  };
}

function joined(first: Int32Array, second: Int32Array): Int32Array {
  const both = new Int32Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
