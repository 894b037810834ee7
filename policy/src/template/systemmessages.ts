/**
 * Fits system messages after the first message to chat templates that refuse or leave out such messages: further ones at the start are
 * joined to the first, and later ones are folded into the next user message.
 */
import type { Message } from '@swefarm/shared';
import { isRefusal } from '../endpoint/errors.ts';
import type { Post } from '../endpoint/post.ts';
import { once } from './once.ts';
import { renderTail, TEXT_PAIR } from './placeholders.ts';
import type { Renderer } from './renderer.ts';

/**
 * Returns the messages as the template can render them. `whole`: the messages begin the conversation. `added`: they follow an answer.
 * Throws errors of the renderer.
 */
export type SystemFolder = (
  messages: readonly Message[],
  post: Post,
  of: 'whole' | 'added',
) => Promise<readonly Message[]>;

/** The template is examined once, when the first such message comes. */
export function createSystemFolder(renderer: Renderer): SystemFolder {
  const isWritten = once((post) => writesLaterOnes(renderer, post));
  return async (messages, post, of) => {
    const from = of === 'whole' && messages[0]?.role === 'system' ? 1 : 0;
    if (!messages.slice(from).some(isSystem) || (await isWritten(post))) return messages;
    return fold(messages, of);
  };
}

const isSystem = ({ role }: Message): boolean => role === 'system';

/** A template that writes a later system message at another position changes nothing after the answer, so both tails are equal. */
async function writesLaterOnes(renderer: Renderer, post: Post): Promise<boolean> {
  const tail = (content: string) =>
    renderTail({ renderer, tools: [], post }, TEXT_PAIR, [
      { role: 'system', content },
      { role: 'user', content: 'go on' },
    ]);
  try {
    const [one, other] = await Promise.all([tail('one'), tail('another')]);
    return one.join() !== other.join();
  } catch (error) {
    if (isRefusal(error)) return false;
    throw error;
  }
}

function fold(messages: readonly Message[], of: 'whole' | 'added'): Message[] {
  const found = of === 'whole' ? messages.findIndex((message) => !isSystem(message)) : 0;
  const start = found === -1 ? messages.length : found;
  const first = messages.slice(0, start).map(({ content }) => content ?? '');
  const folded: Message[] = first.length === 0 ? [] : [{ role: 'system', content: first.join('\n\n') }];
  let pending: string[] = [];
  const flush = (text: string | null, message: Message = { role: 'user', content: null }): void => {
    folded.push({ ...message, content: [...pending, ...(text === null ? [] : [text])].join('\n\n') });
    pending = [];
  };
  for (const message of messages.slice(start)) {
    if (isSystem(message)) pending.push(`<system-reminder>\n${message.content ?? ''}\n</system-reminder>`);
    else if (pending.length > 0 && message.role === 'user') flush(message.content, message);
    else {
      // Results of calls follow their answer at once, so a reminder waits until after them.
      if (pending.length > 0 && message.role === 'assistant') flush(null);
      folded.push(message);
    }
  }
  if (pending.length > 0) flush(null);
  return folded;
}
