/**
 * What the chat template writes between two answers, as token ids.
 *
 * What the model sampled is never rendered or tokenised again. In its place stand two short answers, `yes` and `no`: the
 * same new messages are rendered after each, and what both renderings end with alike is what follows any answer: the
 * token that ends the turn, then the new messages, then the head of the next answer. Nothing of the template need be
 * known, and a template that rewrites earlier answers (drops their thinking) cannot touch what was sampled.
 *
 * The token that ends a turn is sampled by the model when it stops by itself, and is missing when a limit cut it off: it
 * is left out in the first case and written in the second. Where tool results follow, some templates want to see calls
 * before them: the stand-ins then carry calls, and what their markup leaves before the end of the turn is cut away.
 */
import type { Message } from '../trajectory.ts';
import { WireFault } from './fault.ts';
import type { Post } from './post.ts';
import type { Renderer } from './renderer.ts';

export type Incrementer = {
  /**
   * The ids to append to what was seen so that the model hears `messages` and answers.
   *
   * @param lastId the last token sampled
   * @throws WireFault `template` when the template's text after an answer cannot be told from the answer
   */
  after(lastId: number | undefined, messages: readonly Message[], post: Post): Promise<Int32Array>;
};

export function openIncrementer(renderer: Renderer, tools: readonly object[]): Incrementer {
  let end: Promise<number> | null = null;

  const tailAfter = async (messages: readonly Message[], post: Post): Promise<Int32Array> => {
    const render = (word: string) => renderer.render([...standIn(word, messages), ...messages], tools, post);
    const [one, other] = await Promise.all([render('yes'), render('no')]);
    const tail = commonEnd(one, other);
    // Alike from the first token on: the template leaves out what was said, and its end cannot be found.
    if (tail.length > 0 && tail.length < Math.min(one.length, other.length)) return tail;
    throw new WireFault(
      'template',
      'what the chat template writes after an answer cannot be told from the answer',
    );
  };
  /** The token that ends a turn: the first one after an answer without calls. */
  const endOfTurn = async (post: Post): Promise<number> => {
    end ??= tailAfter([{ role: 'user', content: 'and?' }], post).then((tail) => tail[0] ?? -1);
    try {
      return await end;
    } catch (error) {
      end = null;
      throw error;
    }
  };

  return {
    async after(lastId, messages, post) {
      let tail = await tailAfter(messages, post);
      if (messages.some((message) => message.role === 'tool')) {
        const at = tail.indexOf(await endOfTurn(post));
        if (at === -1)
          throw new WireFault('template', 'no end of turn between an answer and its tool results');
        tail = tail.subarray(at);
      }
      return tail[0] === lastId ? tail.subarray(1) : tail;
    },
  };
}

/** A question and its answer; with a call for each of the tool results that follow. */
function standIn(word: string, messages: readonly Message[]): Message[] {
  const calls = messages
    .filter((message) => message.role === 'tool')
    .map((message, place) => ({
      id: message.tool_call_id ?? `call_${place}`,
      type: 'function' as const,
      function: { name: 'bash', arguments: JSON.stringify({ command: word }) },
    }));
  const answer: Message =
    calls.length > 0
      ? { role: 'assistant', content: '', tool_calls: calls }
      : { role: 'assistant', content: word };
  return [{ role: 'user', content: 'well?' }, answer];
}

function commonEnd(one: Int32Array, other: Int32Array): Int32Array {
  let length = 0;
  while (length < one.length && length < other.length && one.at(-1 - length) === other.at(-1 - length))
    length++;
  return one.subarray(one.length - length);
}
