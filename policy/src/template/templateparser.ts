/** Finds the parser of a model's tool calls: the parser that reads a call in the form that the chat template writes. */
import { isRefusal } from '../endpoint/errors.ts';
import type { CallParser } from '../toolcalls/callparser.ts';
import { parserOfCall } from '../toolcalls/registry.ts';
import { type Chat, callPair, commonPrefix, renderClosed, TEXT_PAIR } from './placeholders.ts';

/** Returns the parser; `auto` if the template writes no call in a known form. Throws the errors of `post` except refusals. */
export async function findTemplateParser(chat: Chat): Promise<CallParser | 'auto'> {
  const [called] = callPair([{ role: 'tool', content: '', tool_call_id: 'call00000' }], null);
  const call = called.tool_calls?.[0]?.function;
  try {
    const [withCall, withText] = await Promise.all(
      [called, TEXT_PAIR[0]].map((answer) => renderClosed(chat, answer)),
    );
    if (!withCall || !withText || !call) return 'auto';
    const ids = withCall.subarray(commonPrefix(withCall, withText));
    const written = await chat.renderer.decode(ids, chat.post);
    return parserOfCall(written, call) ?? 'auto';
  } catch (error) {
    if (isRefusal(error)) return 'auto';
    throw error;
  }
}
