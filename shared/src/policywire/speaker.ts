/** One rollout's side of the talk with a policy, in one of three token modes; transport and retries are the user's. */
import type { PolicyConfig } from '../job.ts';
import type { Asked, Message } from '../trajectory.ts';
import { readAnswer } from './answer.ts';
import { type Asking, askFor, openAsking, type Who } from './asking.ts';
import { readCompletion } from './completion.ts';
import { type Incrementer, openIncrementer } from './increment.ts';
import type { Post } from './post.ts';
import { openRenderer, type Renderer } from './renderer.ts';
import { readReply, type WireReply } from './reply.ts';
import { completionBody, requestBody } from './request.ts';
import { effectiveSampling } from './sampling.ts';
import { opensThinking, splitThinking } from './thinking.ts';
import { bareForm } from './toolcalls/bare.ts';
import { bareCallIn } from './toolcalls/forms.ts';
import type { ToolParser } from './toolcalls/names.ts';

export type Speaker = {
  /**
   * Asks once. A call that throws leaves the speaker as it was, so that the same messages may be asked again.
   * `messages` only grow from call to call, and hold the message of each reply as it was given. Throws what `post` throws,
   * WireFault, RolloutFailure `policy_tokens`.
   */
  ask(messages: readonly Message[], tools: readonly object[], post: Post): Promise<SpokenReply>;
};

/** An answer, and what its request alone asked for. */
export type SpokenReply = WireReply & { asked: Asked };

/** Throws UsageError `tokenizer` when the configuration names a folder that is none. */
export async function openSpeaker(config: PolicyConfig, who: Who): Promise<Speaker> {
  const asking = openAsking(config, who);
  if (config.token_mode !== 'token-in') return chatSpeaker(config, asking);
  return tokenSpeaker(config, asking, await openRenderer(config));
}

function chatSpeaker(config: PolicyConfig, asking: Asking): Speaker {
  // Only mode `echo` needs the last answer's ids; the trajectory stores them in its own way.
  let last: WireReply | null = null;
  return {
    async ask(messages, tools, post) {
      const [body, asked] = await askFor(
        asking.forChat(messages),
        (one) => post('chat', requestBody(config, messages, tools, last, one)),
        null,
      );
      const reply = readReply(body);
      // Not its experts: those are the whole answer's bytes.
      if (config.token_mode === 'echo') last = { ...reply, routed_experts: null };
      return { ...reply, asked };
    },
  };
}

/** Of the end of a prompt: enough for `<think>`, however it is cut into tokens. */
const HEAD_TOKENS = 5;

type Said = { ids: Int32Array; message: Message; turn: number; ended: boolean };

/** All ids so far and what is new go to the completions endpoint: contiguous by construction. */
export function tokenSpeaker(config: PolicyConfig, asking: Asking, renderer: Renderer): Speaker {
  let said: Said | null = null;
  let incrementer: Incrementer | null = null;
  /** Rendered once a turn, however often the turn is asked. */
  let prepared: { at: number; prompt: Int32Array } | null = null;
  const opened = openHeads(renderer);
  let bare: ToolParser | null = null;
  // With texts that end an answer, its last token says nothing.
  const { stop } = effectiveSampling(config);

  /** Calls without markers are calls only if the template writes them so. */
  const parserFor = async (text: string, opens: boolean, tools: readonly object[], post: Post) => {
    if (config.tool_parser !== 'auto' || tools.length === 0) return config.tool_parser;
    if (bareCallIn(splitThinking(text, opens).rest) === null) return 'auto';
    bare ??= await bareForm(renderer, tools, post);
    return bare;
  };

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
      const increment = await incrementer.after({ ...said, lastId: said.ids.at(-1) }, news, post);
      prompt = joined(said.ids, increment);
    }
    prepared = { at: messages.length, prompt };
    return prompt;
  };

  return {
    async ask(messages, tools, post) {
      const sent = await promptFor(messages, tools, post);
      const opensThought = await opened(sent, post);
      const [body, asked] = await askFor(
        await asking.forPrompt(messages, sent.length),
        (one) => post('completions', completionBody(config, sent, one)),
        sent.length,
      );
      const { text, ...read } = readCompletion(body);
      const turn = (said?.turn ?? 0) + 1;
      const message = readAnswer(text, {
        withTools: tools.length > 0,
        parser: await parserFor(text, opensThought, tools, post),
        opened: opensThought,
        callId: (place) => nineLetters(turn, place),
      });
      // A server that says nothing of the prompt was still asked exactly this.
      const prompt = read.prompt_token_ids ?? sent;
      const ended = read.finish_reason !== 'length' && stop === undefined;
      said = { ids: joined(prompt, read.generation_token_ids), message, turn, ended };
      prepared = null;
      return { ...read, message, prompt_token_ids: prompt, asked };
    },
  };
}

/** Templates of Mistral take ids of nine letters and digits, and no others. */
const nineLetters = (turn: number, place: number): string =>
  `c${turn.toString(36).padStart(4, '0')}${place.toString(36).padStart(4, '0')}`;

/** Whether the head of the answer, as the template wrote it, opens a thought: asked once for each head. */
function openHeads(renderer: Renderer): (prompt: Int32Array, post: Post) => Promise<boolean> {
  const known = new Map<string, boolean>();
  return async (prompt, post) => {
    const head = prompt.subarray(-HEAD_TOKENS);
    const key = head.join();
    const opens = known.get(key) ?? opensThinking(await renderer.decode(head, post));
    known.set(key, opens);
    return opens;
  };
}

function joined(first: Int32Array, second: Int32Array): Int32Array {
  const both = new Int32Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
