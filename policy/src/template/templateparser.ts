/** Finds the parser of a model's tool calls from how its own chat template writes a call. */
import type { ToolDefinition } from '@swefarm/shared';
import { isRefusal } from '../endpoint/errors.ts';
import type { Post } from '../endpoint/post.ts';
import type { CallParser } from '../toolcalls/callparser.ts';
import { parserOfCall } from '../toolcalls/registry.ts';
import { callPair, commonPrefix, renderClosed, TEXT_PAIR } from './placeholders.ts';
import type { Renderer } from './renderer.ts';

/** Returns `auto` where the template writes no call of a known form. Throws the faults of `post`, but not its refusals. */
export async function findTemplateParser(
  renderer: Renderer,
  tools: readonly ToolDefinition[],
  post: Post,
): Promise<CallParser | 'auto'> {
  const [called] = callPair([{ role: 'tool', content: '', tool_call_id: 'call00000' }], null);
  const call = called.tool_calls?.[0]?.function;
  try {
    const [withCall, withText] = await Promise.all(
      [called, TEXT_PAIR[0]].map((answer) => renderClosed(renderer, answer, tools, post)),
    );
    if (!withCall || !withText || !call) return 'auto';
    const written = await renderer.decode(withCall.subarray(commonPrefix(withCall, withText)), post);
    return parserOfCall(written, call) ?? 'auto';
  } catch (error) {
    if (isRefusal(error)) return 'auto';
    throw error;
  }
}
